//! Work on bytes of images that takes seconds of processor time: others in this process who want the processor come first.

use podstead_sys::process;
use tokio::sync::oneshot;

/// Runs what blocks on a thread of its own that gives way to all others. The answer is an error if the work panics, or if there is no thread for it.
pub(super) fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> oneshot::Receiver<T> {
    let (answer, answered) = oneshot::channel();
    let thread = std::thread::Builder::new().name("image-layer".to_owned()).spawn(move || {
        process::give_way();
        // Whoever asked may have gone.
        let _gone = answer.send(work());
    });
    if let Err(error) = thread {
        tracing::warn!(%error, "no thread for a layer of an image");
    }
    answered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_done_at_a_lower_priority() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        assert!(run(nice).await.unwrap() > before);
        assert_eq!(nice(), before);
    }

    #[tokio::test]
    async fn panic_is_no_answer() {
        run(|| panic!("a test")).await.unwrap_err();
    }
}
