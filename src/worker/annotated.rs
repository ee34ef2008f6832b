//! The published definition of a pod: with the annotation that lists its interfaces.

use podstead_pod::DesiredPod;
use podstead_pod::identity::ANNOTATION_NETWORK_STATUS;
use std::sync::Arc;

/// Made once for each definition and report.
#[derive(Debug, Default)]
pub(super) struct Annotated(Option<Made>);

#[derive(Debug)]
struct Made {
    from: Arc<DesiredPod>,
    report: String,
    shown: Arc<DesiredPod>,
}

impl Annotated {
    /// The definition with this report of the pod's network.
    pub(super) fn of(&mut self, desired: &Arc<DesiredPod>, report: Option<&str>) -> Arc<DesiredPod> {
        let Some(report) = report else {
            self.0 = None;
            return Arc::clone(desired);
        };
        if let Some(made) = self.0.as_ref().filter(|made| Arc::ptr_eq(&made.from, desired) && made.report == report) {
            return Arc::clone(&made.shown);
        }
        let mut shown = (**desired).clone();
        let annotations = Arc::make_mut(&mut shown.pod).metadata.annotations.get_or_insert_default();
        annotations.insert(ANNOTATION_NETWORK_STATUS.to_owned(), report.to_owned());
        let shown = Arc::new(shown);
        self.0 = Some(Made { from: Arc::clone(desired), report: report.to_owned(), shown: Arc::clone(&shown) });
        shown
    }
}
