//! Pods that are not what `require` of their source asks for.

use super::{host_with, pod, refused};

#[test]
fn pods_without_own_users_are_refused() {
    let host = host_with("require: {userNamespace: true}");
    let place = "hostile.yaml:7 spec.hostUsers";
    refused(&host, &pod("root", "hostUsers: true", ""), &[(place, "require.userNamespace")]);
    refused(&host, &pod("root", "", ""), &[("hostile.yaml:5 spec.hostUsers", "require.userNamespace")]);
}

#[test]
fn pods_without_limits_are_kept_out() {
    let host = host_with("require: {limits: [memory, cpu]}");
    let none = "resources:\n  limits:\n    memory: '0'\n    cpu: 100m";
    let place = "hostile.yaml:13 spec.containers[0].resources.limits[memory]";
    refused(&host, &pod("hungry", "", none), &[(place, "require.limits")]);
    host.write_manifest("modest.yaml", &pod("modest", "", "resources: {limits: {memory: 64Mi, cpu: 500m}}"));
    host.wait_running("modest");
    assert_eq!(host.pods().len(), 1);
}

#[test]
fn images_with_changing_names_are_refused() {
    let host = host_with("require: {imageDigest: true}");
    let volume = "volumes:\n- name: v\n  image:\n    reference: localhost/busybox:1";
    refused(
        &host,
        &pod("moving", volume, ""),
        &[
            ("hostile.yaml:10 spec.volumes[0].image.reference", "require.imageDigest"),
            ("hostile.yaml:13 spec.containers[0].image", "require.imageDigest"),
        ],
    );
}

#[test]
fn images_of_others_are_kept_out() {
    let host = host_with("require:\n  images: [registry.lan/apps/, localhost/busybox]");
    let foreign = |image: &str| pod("foreign", "", "").replace("localhost/busybox:1", image);
    for image in ["registry.lan.evil.org/apps/web", "registry.lan/apps-evil/web", "busybox", "localhost:5000/busybox"] {
        refused(&host, &foreign(image), &[("hostile.yaml:9 spec.containers[0].image", "require.images")]);
    }
    host.write_manifest("own.yaml", &pod("own", "", ""));
    host.wait_running("own");
}

#[test]
fn containers_with_writable_image_are_refused() {
    let host = host_with("require: {readOnlyRootFilesystem: true}");
    let place = "hostile.yaml:8 spec.containers[0].securityContext.readOnlyRootFilesystem";
    refused(&host, &pod("writer", "", ""), &[(place, "require.readOnlyRootFilesystem")]);
    host.write_manifest("reader.yaml", &pod("reader", "", "securityContext: {readOnlyRootFilesystem: true}"));
    host.wait_running("reader");
    assert!(!host.cli(&["exec", "reader", "-c", "c", "--", "touch", "/x"]).status.success());
}
