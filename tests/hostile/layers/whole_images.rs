//! Images whose layers are harmless one by one.

use super::archive::{Image, Layer, directory, file};
use super::store::{Registry, Store, Victim, entries};
use podstead::image::{ImageStoreConfig, Limits, RegistryConfig};

fn layer_of_files(name: usize, count: usize) -> Layer {
    let entries: Vec<Vec<u8>> = (0..count).map(|index| file(&format!("{name}-{index}"), b"")).collect();
    Layer::of(&entries)
}

#[test]
fn layers_count_together_in_archives_and_pulls() {
    let layers = || [layer_of_files(0, 400), layer_of_files(1, 400), layer_of_files(2, 400)];
    let registry = Registry::of(Image::of(&layers()));
    let config = format!("registries: [{{host: '{}', http: true}}]\nimages: {{limits: {{entries: 1000}}}}\n", registry.host());
    let victim = Victim::with(&config);
    let limit = "image has more than 1000 files and directories, the limit of images.limits.entries";
    let reason = victim.refuses(&layers());
    assert!(reason.contains(limit), "{reason}");
    let reason = victim.refuses_pull(&registry);
    assert!(reason.contains(limit), "{reason}");
    let compressed = victim.host().path("whole.tar.gz");
    Image::of(&layers()).write(&compressed, super::store::NAME);
    let reason = victim.refuses_archive(compressed.to_str().unwrap());
    assert!(reason.contains(limit), "{reason}");
    victim.takes(&layers()[..2]);
}

#[test]
fn present_layers_count_with_new_ones() {
    let limits = Limits { entries: 1000, ..Limits::default() };
    let image = Image::of(&[layer_of_files(0, 600), layer_of_files(1, 600)]);
    let registry = Registry::of(image);
    let registries = vec![RegistryConfig { host: registry.host(), http: true, ..Default::default() }];
    let store = Store::with(ImageStoreConfig { limits, registries, ..Default::default() });
    let base = store.import(&[layer_of_files(0, 600)]).unwrap();
    assert_eq!(base.len(), 1);
    let reason = store.import(&[layer_of_files(0, 600), layer_of_files(1, 600)]).unwrap_err();
    assert!(reason.contains("more than 1000 files and directories"), "{reason}");
    assert_eq!(entries(&store.path("images/layers")), 1, "the image that was there stays");
}

#[test]
fn repeated_layer_counts_each_time() {
    let limits = Limits { unpacked_bytes: 1 << 20, ..Limits::default() };
    let content = super::archive::noise(100_000);
    let layers: Vec<Layer> = (0..20).map(|_| Layer::of(&[file("f", &content)])).collect();
    let registry = Registry::of(Image::of(&layers));
    let registries = vec![RegistryConfig { host: registry.host(), http: true, ..Default::default() }];
    let store = Store::with(ImageStoreConfig { limits, registries, ..Default::default() });
    assert!(store.refused(&layers).contains("more than 1 MiB after decompression"));
    assert!(store.pull_refused(&registry).contains("more than 1 MiB after decompression"));
}

#[test]
fn manifest_refuses_image_before_any_layer() {
    let limits = Limits { compressed_bytes: 100_000, ..Limits::default() };
    let layers = [Layer::of(&[file("f", &super::archive::noise(60_000))]), Layer::of(&[file("g", &super::archive::noise(61_000))])];
    let registry = Registry::of(Image::of(&layers));
    let registries = vec![RegistryConfig { host: registry.host(), http: true, ..Default::default() }];
    let store = Store::with(ImageStoreConfig { limits, registries, ..Default::default() });
    for reason in [store.pull_refused(&registry), store.refused(&layers)] {
        assert!(reason.contains("more than 97.6 KiB to download, the limit of images.limits.compressedSize"), "{reason}");
    }
}

#[test]
fn more_layers_than_mountable_are_refused() {
    let layers: Vec<Layer> = (0..501).map(|_| Layer::of(&[directory("d")])).collect();
    assert!(Store::new().refused(&layers).contains("image has 501 layers, more than can be mounted"));
}
