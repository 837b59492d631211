"""Tests of a custom kind with the official Python client and its own server."""

import os
import pathlib
import shlex
import subprocess
import tempfile
import time
import unittest

import yaml
from kubernetes import client, config, watch

DEFINITION = pathlib.Path(__file__).parent.parent / "crd" / "boats.yaml"
BOATS = {"group": "harbor.example.com", "version": "v1", "plural": "boats"}
PATIENCE_SECONDS = 30


# region server
class Server:
    """A Wheelhouse that keeps its objects in memory, on a free port of the loopback interface.

    WHEELHOUSE is the command that starts it: the path of the executable, or
    `node node_modules/wheelhouse/bin/wheelhouse.js`.
    """

    def __init__(self):
        self._directory = tempfile.TemporaryDirectory()
        data = pathlib.Path(self._directory.name)
        self._kubeconfig = data / "admin.kubeconfig"
        self._api = None
        self._log = open(data / "server.log", "w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [
                *shlex.split(os.environ.get("WHEELHOUSE", "wheelhouse")),
                "serve",
                "--dialect=kubernetes",
                "--storage-backend=memory",
                f"--data-dir={data}",
                "--bind-address=127.0.0.1",
                "--secure-port=0",
            ],
            stderr=self._log,
        )
        try:
            self._wait_until_ready()
        except Exception:
            self.stop()
            raise

    @property
    def api(self):
        """A client of the administrator."""
        if self._api is None:
            self._api = config.new_client_from_config(str(self._kubeconfig))
        return self._api

    def _wait_until_ready(self):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                readyz = {"auth_settings": ["BearerToken"], "_request_timeout": 5}
                self.api.call_api("/readyz", "GET", **readyz)
                return
            except Exception as error:  # Whatever the client raises while the server starts.
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self._log.seek(0)
                    raise RuntimeError("no server:\n" + self._log.read()) from error
            time.sleep(0.02)

    def stop(self):
        if self._api is not None:
            self._api.rest_client.pool_manager.clear()
            self._api.close()
        self._process.terminate()
        self._process.wait(PATIENCE_SECONDS)
        self._log.close()
        self._directory.cleanup()
# endregion server


def boat(name, crew):
    return {
        "apiVersion": "harbor.example.com/v1",
        "kind": "Boat",
        "metadata": {"name": name},
        "spec": {"crew": crew},
    }


class BoatTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.api = cls.server.api
        cls.boats = client.CustomObjectsApi(cls.api)
        cls.define_boats()

    @classmethod
    def define_boats(cls):
        definitions = client.ApiextensionsV1Api(cls.api)
        definition = yaml.safe_load(DEFINITION.read_text(encoding="utf-8"))
        definitions.create_custom_resource_definition(definition)
        changes = watch.Watch().stream(
            definitions.list_custom_resource_definition,
            field_selector="metadata.name=" + definition["metadata"]["name"],
            timeout_seconds=PATIENCE_SECONDS,
        )
        for change in changes:
            conditions = change["object"].status.conditions or []
            if any(one.type == "Established" and one.status == "True" for one in conditions):
                return
        raise RuntimeError("the definition is not established")

    def setUp(self):
        """Gives each test a namespace."""
        namespaces = client.CoreV1Api(self.api)
        meta = client.V1ObjectMeta(generate_name="test-")
        made = namespaces.create_namespace(client.V1Namespace(metadata=meta))
        self.namespace = made.metadata.name
        self.addCleanup(namespaces.delete_namespace, self.namespace)
        self.scope = {**BOATS, "namespace": self.namespace}

    # region watch
    def test_a_watch_sees_every_change(self):
        start = self.boats.list_namespaced_custom_object(**self.scope)["metadata"]
        self.boats.create_namespaced_custom_object(**self.scope, body=boat("elisa", ["ann"]))
        crew = {"spec": {"crew": ["ann", "bob"]}}
        self.boats.patch_namespaced_custom_object(**self.scope, name="elisa", body=crew)
        self.boats.delete_namespaced_custom_object(**self.scope, name="elisa")
        seen = []
        changes = watch.Watch()
        for change in changes.stream(
            self.boats.list_namespaced_custom_object,
            **self.scope,
            resource_version=start["resourceVersion"],
            timeout_seconds=PATIENCE_SECONDS,
        ):
            seen.append((change["type"], change["object"]["spec"]["crew"]))
            if change["type"] == "DELETED":
                changes.stop()
        self.assertEqual(
            seen,
            [("ADDED", ["ann"]), ("MODIFIED", ["ann", "bob"]), ("DELETED", ["ann", "bob"])],
        )
    # endregion watch

    def test_a_stale_write_is_a_conflict(self):
        body = boat("elisa", ["ann"])
        first = self.boats.create_namespaced_custom_object(**self.scope, body=body)
        newer = {**first, "spec": {"crew": ["bob"]}}
        self.boats.replace_namespaced_custom_object(**self.scope, name="elisa", body=newer)
        older = {**first, "spec": {"crew": ["cy"]}}
        with self.assertRaises(client.ApiException) as caught:
            self.boats.replace_namespaced_custom_object(**self.scope, name="elisa", body=older)
        self.assertEqual(caught.exception.status, 409)

    def test_a_boat_without_a_crew_is_rejected(self):
        with self.assertRaises(client.ApiException) as caught:
            self.boats.create_namespaced_custom_object(**self.scope, body=boat("empty", []))
        self.assertEqual(caught.exception.status, 422)
        self.assertIn("spec.crew", caught.exception.body)


if __name__ == "__main__":
    unittest.main()
