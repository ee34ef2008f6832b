//! The preload directory.

use crate::collection::{Marks, small_reserve};
use crate::support::{TestStore, eventually, references};
use podstead::telemetry::events::EventType;
use podstead::{
    image::{ImageStore, ImageStoreConfig},
    pod::containers::PullPolicy,
    runtime::{ImageService, PullSecrets},
};
use std::fs;
use std::io::Write;
use std::sync::Arc;

struct Preloaded {
    test: TestStore,
    store: Arc<ImageStore>,
    task: tokio::task::JoinHandle<()>,
}

impl Preloaded {
    fn start(test: TestStore) -> Self {
        Self::start_with(test, ImageStoreConfig::default())
    }

    fn start_with(test: TestStore, config: ImageStoreConfig) -> Self {
        let config = ImageStoreConfig { preload: Some(test.path("preload")), ..config };
        let store = test.open_with(config);
        let task = tokio::spawn(store.run_preload());
        Self { test, store, task }
    }

    /// As a restart: task and store are gone.
    async fn stop(self) -> TestStore {
        let Self { test, store, task } = self;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        drop(store);
        test
    }

    fn told(&self, kind: EventType, text: &str) -> usize {
        self.test.events.all().iter().filter(|(had, _, message)| *had == kind && message.contains(text)).count()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn archives_are_imported_at_start_and_when_they_appear_and_only_once() {
    let test = TestStore::new();
    fs::create_dir(test.path("preload")).unwrap();
    test.make_image("preload/a.tar", "localhost/a:1", &[]);
    let running = Preloaded::start(test);
    // The image is not missed although nothing waited for the import.
    running.store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    // By rename, and by a slow copy.
    running.test.make_image("preload/b.tar.gz", "localhost/b:1", &[]);
    let content = fs::read(running.test.make_image("c.tar", "localhost/c:1", &[])).unwrap();
    let mut copy = fs::File::create(running.test.path("preload/c.tar")).unwrap();
    let (first, second) = content.split_at(content.len() / 2);
    copy.write_all(first).unwrap();
    eventually("the renamed archive", || async { references(&running.store).await.contains(&"localhost/b:1".to_owned()) }).await;
    copy.write_all(second).unwrap();
    assert_eq!(running.told(EventType::Warning, ""), 0, "half a copy is not an error: {:?}", running.test.events.all());
    drop(copy);
    eventually("the copied archive", || async { references(&running.store).await.contains(&"localhost/c:1".to_owned()) }).await;
    // After a restart nothing is imported again, not even what was removed by hand.
    running.store.remove("localhost/b:1", true).await.unwrap();
    // The event follows the reference.
    let imports = 3;
    eventually("the events", || async { running.told(EventType::Normal, "imported") == imports }).await;
    let again = Preloaded::start(running.stop().await);
    again.store.ensure("localhost/b:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap_err();
    assert_eq!(again.told(EventType::Normal, "imported"), imports);
    again.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_archive_is_reported_once_and_tried_again_when_it_changes() {
    let test = TestStore::new();
    fs::create_dir(test.path("preload")).unwrap();
    fs::write(test.path("preload/broken.tar"), b"this is no archive").unwrap();
    fs::write(test.path("preload/notes.txt"), b"remember the milk").unwrap();
    fs::write(test.path("preload/.hidden.tar"), b"temporary").unwrap();
    let running = Preloaded::start(test);
    running.store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap_err();
    assert_eq!(running.told(EventType::Warning, "broken.tar"), 1);
    assert_eq!(running.told(EventType::Warning, "notes.txt is not imported"), 1);
    assert_eq!(running.told(EventType::Warning, "hidden"), 0);
    // Another file: the broken one is not looked at again.
    running.test.make_image("preload/b.tar", "localhost/b:1", &[]);
    eventually("the good archive", || async { references(&running.store).await == ["localhost/b:1"] }).await;
    assert_eq!(running.told(EventType::Warning, "broken.tar"), 1);
    running.test.make_image("preload/broken.tar", "localhost/a:1", &[]);
    eventually("the mended archive", || async { references(&running.store).await.len() == 2 }).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_is_not_there_is_made() {
    let running = Preloaded::start(TestStore::new());
    running.store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap_err();
    running.test.make_image("preload/a.tar", "localhost/a:1", &[]);
    eventually("the archive", || async { references(&running.store).await == ["localhost/a:1"] }).await;
    running.stop().await;
}

/// F36.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn image_of_a_removed_archive_is_an_ordinary_one() {
    let test = TestStore::new();
    fs::create_dir(test.path("preload")).unwrap();
    let archive = test.make_image("preload/a.tar", "localhost/a:1", &[]);
    let running = Preloaded::start_with(test, small_reserve());
    let marks = Arc::new(Marks::default());
    marks.set(&[]);
    running.store.set_roots(marks);
    running.store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    let kept = async || -> Vec<String> {
        let report = running.store.prune(true, true).await.unwrap();
        report.images.into_iter().filter_map(|image| image.kept).collect()
    };
    assert_eq!(kept().await, ["preloaded from a.tar"]);
    fs::remove_file(archive).unwrap();
    eventually("the removal to be seen", async || kept().await.is_empty()).await;
    assert_eq!(references(&running.store).await, ["localhost/a:1"], "it stays as long as there is space");
    let told = "a.tar was removed: localhost/a:1 now stay only while something needs them";
    eventually("the event", async || running.told(EventType::Normal, told) == 1).await;
    let running = Preloaded::start_with(running.stop().await, small_reserve());
    let marks = Arc::new(Marks::default());
    marks.set(&[]);
    running.store.set_roots(marks);
    eventually("the first listing", async || running.store.prune(true, true).await.is_ok()).await;
    assert_eq!(running.told(EventType::Normal, told), 1, "once, also after a restart");
    running.store.prune(true, false).await.unwrap();
    assert_eq!((references(&running.store).await.len(), running.test.layers()), (0, 0));
    running.stop().await;
}
