"""The Kubernetes client of Python against the API of one host: its address is the argument."""
import sys

from kubernetes import client, watch
from kubernetes.client.rest import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.stream import stream

configuration = client.Configuration(host=f"http://{sys.argv[1]}")
api_client = client.ApiClient(configuration)
core, apps, batch = client.CoreV1Api(api_client), client.AppsV1Api(api_client), client.BatchV1Api(api_client)


def wait_for(kind, list_objects, name, is_met):
    """The object as soon as it is as wanted."""
    for event in watch.Watch().stream(list_objects, "default", field_selector=f"metadata.name={name}", timeout_seconds=60):
        if is_met(event["object"]):
            return event["object"]
    sys.exit(f"{kind} {name} is not as wanted after a minute")


container = client.V1Container(name="main", image="localhost/busybox:1", command=["sh", "-c", "echo ready; exec sleep 1000"])
spec = client.V1PodSpec(containers=[container], termination_grace_period_seconds=1)
pod = client.V1Pod(metadata=client.V1ObjectMeta(name="web", labels={"app": "web"}), spec=spec)
assert core.create_namespaced_pod("default", pod).metadata.uid
running = wait_for("pod", core.list_namespaced_pod, "web", lambda pod: pod.status.phase == "Running")
assert running.spec.node_name == core.list_node().items[0].metadata.name
assert core.list_pod_for_all_namespaces(label_selector="app=web").items[0].metadata.name == "web"
for line in watch.Watch().stream(core.read_namespaced_pod_log, "web", "default"):
    assert line == "ready", line
    break
told = stream(
    core.connect_get_namespaced_pod_exec, "web", "default", command=["sh", "-c", "echo inside; echo wrong >&2"],
    stdout=True, stderr=True, stdin=False, tty=False, _preload_content=False,
)
told.run_forever(timeout=60)
assert (told.read_stdout(), told.read_stderr(), told.returncode) == ("inside\n", "wrong\n", 0)

settings = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="settings"), data={"a": "1"})
core.create_namespaced_config_map("default", settings)
assert core.patch_namespaced_config_map("settings", "default", {"data": {"b": "2"}}).data == {"a": "1", "b": "2"}
stale = core.read_namespaced_config_map("settings", "default")
core.patch_namespaced_config_map("settings", "default", {"data": {"a": None}})
try:
    core.replace_namespaced_config_map("settings", "default", stale)
    sys.exit("an object that was changed in between was replaced")
except ApiException as error:
    assert error.status == 409, error

template = client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels={"app": "shop"}), spec=spec)
wanted = client.V1DeploymentSpec(replicas=2, selector=client.V1LabelSelector(match_labels={"app": "shop"}), template=template)
apps.create_namespaced_deployment("default", client.V1Deployment(metadata=client.V1ObjectMeta(name="shop"), spec=wanted))
wait_for("deployment", apps.list_namespaced_deployment, "shop", lambda shop: shop.status.ready_replicas == 2)
apps.patch_namespaced_deployment_scale("shop", "default", {"spec": {"replicas": 1}})
wait_for("deployment", apps.list_namespaced_deployment, "shop", lambda shop: shop.status.replicas == 1)

resources = DynamicClient(api_client).resources
services = resources.get(api_version="v1", kind="Service")
front = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"},
         "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
services.create(body=front, namespace="default")
assert services.get(name="front", namespace="default").spec.ports[0].targetPort == 80
assert resources.get(api_version="podstead.dev/v1alpha1", kind="Source").get().items[0].metadata.name == "manifests"

try:
    core.read_namespaced_pod("none", "default")
    sys.exit("a pod that does not exist was read")
except ApiException as error:
    assert error.status == 404, error
core.delete_namespaced_pod("web", "default")
events = core.list_namespaced_event("default", field_selector="involvedObject.name=web").items
assert {"Pulled", "Created", "Started"} <= {event.reason for event in events}, events

told = client.EventsV1Api(api_client).list_namespaced_event("default", field_selector="regarding.name=web").items
assert {"Pulled", "Created", "Started"} <= {event.reason for event in told}, told
assert all(event.event_time and event.note for event in told), told
