//! Images of the revisions of a source that are in force or can be put in force again.

use super::AcceptedObject;
use super::last_good::{LastGood, LastGoodError, Record};
use k8s_openapi::api::core::v1::PodSpec;
use podstead_pod::SourceId;
use podstead_sys::layout::Paths;
use std::collections::BTreeSet;

/// An image that a revision needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptImage {
    /// As written in the manifest.
    pub image: String,
    /// Number of the revision in the source's history.
    pub number: u64,
    /// True if the revision is in force.
    pub in_force: bool,
}

/// Images of the revision of `source` in force and of the `earlier` ones before it, those of all layers and of templates of workloads included. Blocks.
///
/// A revision whose record is damaged cannot be put in force again and needs no image; the one before it counts instead. A record that cannot be read
/// now is an error.
pub fn kept_images(paths: &Paths, source: &SourceId, earlier: usize) -> Result<BTreeSet<KeptImage>, LastGoodError> {
    let files = LastGood::new(paths, source.clone());
    let mut images = BTreeSet::new();
    let in_force = match files.load() {
        Ok(state) => state.in_force,
        Err(error) => return Err(error),
    };
    let number = in_force.as_ref().map(|record| record.stamp.number);
    in_force.iter().for_each(|record| add(&mut images, record, true));
    let mut left = earlier;
    for record in files.earlier(number, usize::MAX)? {
        match record {
            Ok(record) if left > 0 => {
                add(&mut images, &record, false);
                left -= 1;
            }
            Ok(_) => break,
            Err(unreadable) => match unreadable.source {
                error @ LastGoodError::Read { .. } => return Err(error),
                LastGoodError::Parse { .. }
                | LastGoodError::Damaged(_)
                | LastGoodError::NoBase { .. }
                | LastGoodError::Version { .. }
                | LastGoodError::OtherSource { .. }
                | LastGoodError::Write { .. } => {}
            },
        }
    }
    Ok(images)
}

fn add(images: &mut BTreeSet<KeptImage>, record: &Record, in_force: bool) {
    let objects = record.files.values().flat_map(|file| &file.objects);
    let number = record.stamp.number;
    let named = objects.flat_map(|object| images_of_object(&object.object));
    images.extend(named.map(|image| KeptImage { image: image.to_owned(), number, in_force }));
}

/// The images of a pod, or of the pods of a workload; none of other objects.
pub fn images_of_object(object: &AcceptedObject) -> impl Iterator<Item = &str> {
    let spec = match object {
        AcceptedObject::Pod(pod) => pod.spec.as_ref(),
        AcceptedObject::Workload(workload) => workload.template().and_then(|template| template.spec.as_ref()),
        AcceptedObject::ConfigMap(_)
        | AcceptedObject::Secret(_)
        | AcceptedObject::PersistentVolumeClaim(_)
        | AcceptedObject::Network(_) => None,
    };
    spec.into_iter().flat_map(images_of)
}

/// The images of a pod: those of all its containers and image volumes.
pub fn images_of(spec: &PodSpec) -> impl Iterator<Item = &str> {
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    let volumes = spec.volumes.iter().flatten();
    let of_volumes = volumes.filter_map(|volume| volume.image.as_ref()?.reference.as_deref());
    containers.filter_map(|container| container.image.as_deref()).chain(of_volumes)
}
