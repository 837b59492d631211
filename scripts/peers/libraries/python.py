"""A session of the Python client: prints what every step answers, for comparison."""

import inspect
import json
import sys

import kubernetes
from kubernetes import client, config, dynamic, stream, utils, watch
from kubernetes.client.rest import ApiException

NAMESPACE = "peers-python"


def text_of(value):
    plain = client.ApiClient().sanitize_for_serialization(value)
    return json.dumps(plain, sort_keys=True, indent=1, default=str)


def error_of(error):
    try:
        body = json.dumps(json.loads(error.body), sort_keys=True, indent=1)
    except (TypeError, ValueError):
        body = str(error.body)
    return f"{type(error).__name__} {error.status} {error.reason}\n{body}"


def step(title, action):
    print(f"## {title}")
    try:
        value = action()
        print(value if isinstance(value, str) else text_of(value))
        return value
    except ApiException as error:
        print(error_of(error))
    except Exception as error:  # noqa: BLE001
        print(f"{type(error).__name__}: {error}")
    sys.stdout.flush()
    return None


def summary(value):
    """What is the same on every server of a list: its type, and the names of one kind."""
    items = getattr(value, "items", None) or []
    return f"{type(value).__name__} of {len(items)}"


def api_classes():
    named = inspect.getmembers(client, inspect.isclass)
    return [(name, one()) for name, one in named if name.endswith("Api")]


def list_everything():
    lines = []
    for name, api in api_classes():
        for method in sorted(dir(api)):
            if not method.startswith("list_") or method.endswith("_with_http_info"):
                continue
            if "custom_object" in method:
                continue
            arguments = [NAMESPACE] if "namespaced" in method else []
            try:
                lines.append(f"{name}.{method}: {summary(getattr(api, method)(*arguments))}")
            except ApiException as error:
                lines.append(f"{name}.{method}: {error.status} {error.reason}")
            except ValueError as error:
                lines.append(f"{name}.{method}: {error}")
    return "\n".join(lines)


def discover_everything():
    lines = []
    for name, api in api_classes():
        for method in ("get_api_group", "get_api_resources", "get_api_versions"):
            if not hasattr(api, method):
                continue
            try:
                value = getattr(api, method)()
                resources = [one.name for one in getattr(value, "resources", None) or []]
                lines.append(f"{name}.{method}: {type(value).__name__} {sorted(resources)}")
            except ApiException as error:
                lines.append(f"{name}.{method}: {error.status}")
    return "\n".join(lines)


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"a": "b"}), data=data)


def pod(name):
    container = client.V1Container(name="main", image="example.test/app:1")
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels={"app": name}),
        spec=client.V1PodSpec(containers=[container]),
    )


def deployment(name, **changes):
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels={"app": name}), spec=pod(name).spec
    )
    selector = client.V1LabelSelector(match_labels={"app": name})
    spec = client.V1DeploymentSpec(selector=selector, template=template, **changes)
    return client.V1Deployment(metadata=client.V1ObjectMeta(name=name), spec=spec)


def play_core(core):
    step("namespace", lambda: core.create_namespace({"metadata": {"name": NAMESPACE}}).kind)
    made = step("create", lambda: core.create_namespaced_config_map(NAMESPACE, config_map("one", a="1")))
    step("create again", lambda: core.create_namespaced_config_map(NAMESPACE, config_map("one")))
    step("read", lambda: core.read_namespaced_config_map("one", NAMESPACE))
    step("read missing", lambda: core.read_namespaced_config_map("none", NAMESPACE))
    made.data = {"a": "2"}
    step("replace", lambda: core.replace_namespaced_config_map("one", NAMESPACE, made))
    step("replace stale", lambda: core.replace_namespaced_config_map("one", NAMESPACE, made))
    patch = {"data": {"b": "3", "a": None}}
    step("patch", lambda: core.patch_namespaced_config_map("one", NAMESPACE, patch))
    operations = [{"op": "add", "path": "/data/c", "value": "4"}]
    step("json patch", lambda: core.patch_namespaced_config_map("one", NAMESPACE, operations))
    wrong = [{"op": "remove", "path": "/data/none"}]
    step("json patch fails", lambda: core.patch_namespaced_config_map("one", NAMESPACE, wrong))
    strict = {"field_validation": "Strict"} if kubernetes.__version__ >= "25" else {"dry_run": "All"}
    bad = {"metadata": {"name": "bad"}, "nosuch": 1}
    step("strict", lambda: core.create_namespaced_config_map(NAMESPACE, bad, **strict))
    invalid = pod("Not A Name")
    step("invalid", lambda: core.create_namespaced_pod(NAMESPACE, invalid))
    step("dry run", lambda: core.create_namespaced_pod(NAMESPACE, pod("dry"), dry_run="All"))
    step("pretty", lambda: core.read_namespaced_config_map("one", NAMESPACE, pretty="true").data)
    raw = core.read_namespaced_config_map("one", NAMESPACE, _preload_content=False)
    step("raw", lambda: f"{raw.status} {raw.headers['Content-Type']}")


def play_lists(core):
    for number in range(5):
        core.create_namespaced_config_map(NAMESPACE, config_map(f"page-{number}", n=str(number)))
    names = lambda page: [one.metadata.name for one in page.items]
    first = core.list_namespaced_config_map(NAMESPACE, limit=2, label_selector="a=b")
    step("first page", lambda: f"{names(first)} {first.metadata.remaining_item_count}")
    more = lambda token: core.list_namespaced_config_map(NAMESPACE, limit=9, _continue=token)
    step("second page", lambda: names(more(first.metadata._continue)))
    step("bad continue token", lambda: more("nonsense"))
    fields = "metadata.name=page-3"
    step("field selector", lambda: names(core.list_namespaced_config_map(NAMESPACE, field_selector=fields)))
    step("bad field selector", lambda: core.list_namespaced_config_map(NAMESPACE, field_selector="data.n=1"))
    step("bad label selector", lambda: core.list_namespaced_config_map(NAMESPACE, label_selector="a in b"))
    exact = lambda: core.list_namespaced_config_map(
        NAMESPACE,
        resource_version=first.metadata.resource_version,
        resource_version_match="Exact",
    )
    step("exact", lambda: len(names(exact())))
    old = lambda: core.list_namespaced_config_map(NAMESPACE, resource_version="99999999", timeout_seconds=1)
    step("too new", old)
    every = core.delete_collection_namespaced_config_map
    step("delete collection", lambda: every(NAMESPACE, label_selector="a=b").kind)
    step("left", lambda: names(core.list_namespaced_config_map(NAMESPACE)))


def play_watch(core):
    start = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    core.create_namespaced_config_map(NAMESPACE, config_map("seen", n="0"))
    core.patch_namespaced_config_map("seen", NAMESPACE, {"data": {"n": "1"}})
    core.delete_namespaced_config_map("seen", NAMESPACE)

    def events(**options):
        found = []
        for event in watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, **options):
            data = event["object"].data if hasattr(event["object"], "data") else event["object"]
            found.append(f"{event['type']} {data}")
        return "\n".join(found)

    step("watch", lambda: events(resource_version=start, timeout_seconds=2))
    step("watch from zero", lambda: events(resource_version="0", timeout_seconds=2))
    step("watch too old", lambda: events(resource_version="1", timeout_seconds=2))
    step("watch malformed", lambda: events(resource_version="x", timeout_seconds=2))
    bookmarks = {"allow_watch_bookmarks": True, "timeout_seconds": 2}
    step("bookmarks", lambda: events(resource_version=start, **bookmarks))


def play_workloads(core):
    apps, batch, scaling = client.AppsV1Api(), client.BatchV1Api(), client.AutoscalingV1Api()
    step("deployment", lambda: apps.create_namespaced_deployment(NAMESPACE, deployment("web")))
    step("no selector", lambda: apps.create_namespaced_deployment(NAMESPACE, {"metadata": {"name": "x"}, "spec": {}}))
    step("scale", lambda: apps.read_namespaced_deployment_scale("web", NAMESPACE))
    scale = {"spec": {"replicas": 3}}
    step("patch scale", lambda: apps.patch_namespaced_deployment_scale("web", NAMESPACE, scale))
    status = {"status": {"replicas": 1, "readyReplicas": 1}}
    step("patch status", lambda: apps.patch_namespaced_deployment_status("web", NAMESPACE, status))
    more = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "b"}]}}}}
    step("merge containers", lambda: apps.patch_namespaced_deployment("web", NAMESPACE, more))
    step("orphan", lambda: apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Orphan").status)
    step("bad policy", lambda: apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="X"))
    job = {"metadata": {"name": "job"}, "spec": {"template": {"spec": pod("job").spec}}}
    step("job", lambda: batch.create_namespaced_job(NAMESPACE, job))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaler = {"metadata": {"name": "web"}, "spec": {"maxReplicas": 2, "scaleTargetRef": target}}
    step("autoscaler", lambda: scaling.create_namespaced_horizontal_pod_autoscaler(NAMESPACE, scaler))
    ports = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80, "targetPort": "http"}]}}
    step("service", lambda: core.create_namespaced_service(NAMESPACE, ports))
    step("secret", lambda: core.create_namespaced_secret(NAMESPACE, {"metadata": {"name": "s"}, "stringData": {"k": "v"}}))
    event = {
        "metadata": {"name": "event"},
        "involvedObject": {"kind": "Pod", "name": "x", "namespace": NAMESPACE},
    }
    step("event", lambda: core.create_namespaced_event(NAMESPACE, event))


def play_pods(core):
    step("pod", lambda: core.create_namespaced_pod(NAMESPACE, pod("solo")))
    step("log", lambda: core.read_namespaced_pod_log("solo", NAMESPACE))
    run = core.connect_get_namespaced_pod_exec
    command = {"command": ["true"], "stderr": True, "stdin": False, "stdout": True, "tty": False}
    step("exec", lambda: stream.stream(run, "solo", NAMESPACE, **command))
    forward = core.connect_get_namespaced_pod_portforward
    step("port forward", lambda: stream.portforward(forward, "solo", NAMESPACE, ports="80").connected)
    step("proxy", lambda: core.connect_get_namespaced_pod_proxy("solo", NAMESPACE))
    binding = {"metadata": {"name": "solo"}, "target": {"kind": "Node", "name": "none"}}
    bind = lambda: core.create_namespaced_pod_binding("solo", NAMESPACE, binding, _preload_content=False)
    step("binding", lambda: json.loads(bind().data))
    eviction = {"metadata": {"name": "solo"}, "deleteOptions": {"gracePeriodSeconds": 0}}
    step("eviction", lambda: core.create_namespaced_pod_eviction("solo", NAMESPACE, eviction))
    step("gone", lambda: core.read_namespaced_pod("solo", NAMESPACE).metadata.deletion_timestamp is None)
    step("delete twice", lambda: core.delete_namespaced_pod("none", NAMESPACE))


def play_access(core):
    authentication, authorization = client.AuthenticationV1Api(), client.AuthorizationV1Api()
    token = {"spec": {"audiences": ["a"], "expirationSeconds": 600}}
    made = step("token", lambda: core.create_namespaced_service_account_token("default", NAMESPACE, token).kind)
    review = {"spec": {"token": "nonsense"}}
    step("token review", lambda: authentication.create_token_review(review))
    attributes = {"namespace": NAMESPACE, "verb": "get", "resource": "pods"}
    access = {"spec": {"user": "jane", "resourceAttributes": attributes}}
    step("access review", lambda: authorization.create_subject_access_review(access))
    own = {"spec": {"resourceAttributes": attributes}}
    step("own access", lambda: authorization.create_self_subject_access_review(own))
    local = lambda: authorization.create_namespaced_local_subject_access_review("default", access)
    step("local review elsewhere", local)
    anonymous = client.Configuration.get_default_copy()
    anonymous.api_key = {}
    stranger = client.CoreV1Api(client.ApiClient(anonymous))
    step("anonymous", lambda: stranger.list_node())
    impostor = client.ApiClient(header_name="Impersonate-User", header_value="jane")
    step("impersonated", lambda: client.CoreV1Api(impostor).list_namespaced_pod(NAMESPACE))
    return made


GADGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gauges.peers.test"},
    "spec": {
        "group": "peers.test",
        "scope": "Namespaced",
        "names": {"plural": "gauges", "singular": "gauge", "kind": "Gauge", "listKind": "GaugeList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer", "maximum": 5}},
                            },
                            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}


def gauge(name, size):
    return {
        "apiVersion": "peers.test/v1",
        "kind": "Gauge",
        "metadata": {"name": name},
        "spec": {"size": size},
    }


def wait_for(resource, name):
    for event in resource.watch(field_selector=f"metadata.name={name}", timeout=20):
        conditions = event["raw_object"].get("status", {}).get("conditions") or []
        if any(one["type"] == "Established" and one["status"] == "True" for one in conditions):
            return "established"
    return "never established"


def play_dynamic():
    api = client.ApiClient()
    dynamic_client = dynamic.DynamicClient(api)
    crds = dynamic_client.resources.get(
        api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition"
    )
    step("define", lambda: crds.create(body=GADGETS).spec.to_dict())
    step("wait", lambda: wait_for(crds, "gauges.peers.test"))
    dynamic_client.resources.invalidate_cache()
    find = lambda: dynamic_client.resources.get(api_version="peers.test/v1", kind="Gauge")
    for _ in range(50):
        try:
            find()
            break
        except dynamic.exceptions.ResourceNotFoundError:
            dynamic_client.resources.invalidate_cache()
    gauges = find()
    step("found", lambda: f"{gauges.name} {gauges.kind} {sorted(gauges.verbs)} {sorted(gauges.subresources)}")
    show = lambda value: value.to_dict()
    step("create gauge", lambda: show(gauges.create(body=gauge("one", 1), namespace=NAMESPACE)))
    step("too large", lambda: gauges.create(body=gauge("two", 9), namespace=NAMESPACE))
    merge = "application/merge-patch+json"
    step("merge", lambda: show(gauges.patch(body=gauge("one", 2), namespace=NAMESPACE, content_type=merge)))
    strategic = "application/strategic-merge-patch+json"
    step("strategic", lambda: gauges.patch(body=gauge("one", 2), namespace=NAMESPACE, content_type=strategic))
    apply = lambda manager, size, **more: show(
        gauges.server_side_apply(body=gauge("one", size), namespace=NAMESPACE, field_manager=manager, **more)
    )
    if hasattr(dynamic_client, "server_side_apply"):
        step("apply", lambda: apply("one", 3, force_conflicts=True))
        step("apply conflict", lambda: apply("two", 4))
    step("status", lambda: show(gauges.status.patch(body={"metadata": {"name": "one"}, "status": {"size": 2}}, namespace=NAMESPACE, name="one", content_type=merge)))
    step("list", lambda: [one.metadata.name for one in gauges.get(namespace=NAMESPACE).items])
    step("missing", lambda: gauges.get(namespace=NAMESPACE, name="none"))
    custom = client.CustomObjectsApi()
    at = ("peers.test", "v1", NAMESPACE, "gauges")
    step("custom get", lambda: custom.get_namespaced_custom_object(*at, "one"))
    step("custom scale", lambda: custom.get_namespaced_custom_object_scale(*at, "one"))
    patched = lambda: custom.patch_namespaced_custom_object_scale(*at, "one", {"spec": {"replicas": 4}})
    step("custom patch scale", patched)
    step("custom patch", lambda: custom.patch_namespaced_custom_object(*at, "one", {"spec": {"size": 5}}))
    step("custom invalid", lambda: custom.patch_namespaced_custom_object(*at, "one", {"spec": {"size": 6}}))
    step("custom delete", lambda: custom.delete_namespaced_custom_object(*at, "one"))
    step("undefine", lambda: crds.delete(name="gauges.peers.test").kind)


def main():
    config.load_kube_config()
    core = client.CoreV1Api()
    step("version", lambda: client.VersionApi().get_code().major)
    step("groups", lambda: sorted(one.name for one in client.ApisApi().get_api_versions().groups))
    step("discovery", discover_everything)
    play_core(core)
    play_lists(core)
    play_watch(core)
    play_workloads(core)
    play_pods(core)
    play_access(core)
    play_dynamic()
    documents = [config_map("from-one").to_dict(), {"apiVersion": "v1", "kind": "Nonsense", "metadata": {"name": "x"}}]
    listed = {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "listed"}}]}
    step("from dictionary", lambda: len(utils.create_from_dict(client.ApiClient(), listed, namespace=NAMESPACE)))
    step("from nothing", lambda: utils.create_from_dict(client.ApiClient(), documents[1]))
    step("lists", list_everything)
    step("delete namespace", lambda: core.delete_namespace(NAMESPACE).kind)


main()
