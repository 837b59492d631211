import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { freshNamespace } from '../support/harness.ts';
import { kubectlIsHere, kubectlOf } from '../support/kubectl.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer({ dialect: 'kubernetes' });
const client = untilEnd(kubectlOf(server));
let namespace: string;
beforeEach(async () => {
  namespace = await freshNamespace(server);
});

const begin = (args: readonly string[], options?: { editor: string }) =>
  client.begin([`--namespace=${namespace}`, ...args], options);

/** Runs a command that must succeed; returns its output without the last newline. */
async function kubectl(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await begin(args).done;
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: exit ${code}\n${stderr}${stdout}`);
  return stdout.trimEnd();
}

function file(name: string, text: string): string {
  const path = join(client.directory, name);
  writeFileSync(path, text);
  return path;
}

// What a test only prepares or reads needs no kubectl: its start takes most of the time.
const configMaps = () => `/api/v1/namespaces/${namespace}/configmaps`;

/** Creates the object of `configMap()` with labels. */
async function createConfigMap(labels: Readonly<Record<string, string>> = {}): Promise<void> {
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c', labels } };
  expect((await server.post(configMaps(), { ...map, data: { a: '1' } })).status).toBe(201);
}

const configMap = (data = '{a: "1"}') =>
  file('configmap.yaml', `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: ${data}\n`);

const deployment = (replicas: number) =>
  file(
    'deployment.yaml',
    `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: ${replicas}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: server
        image: nginx
        ports: [{containerPort: 80}]
`,
  );

const dataOf = async (name: string): Promise<unknown> =>
  (await server.get(`${configMaps()}/${name}`)).body.data;

const replicasOf = async (name: string): Promise<unknown> =>
  (await server.get(`/apis/apps/v1/namespaces/${namespace}/deployments/${name}`)).body.spec
    .replicas;

describe.skipIf(!kubectlIsHere)('kubectl', () => {
  test('CLIENT-2: version and api-resources describe the server', async () => {
    expect(await kubectl('version')).toMatch(/^Server Version: v1\.32\./m);
    const resources = await kubectl('api-resources');
    expect(resources).toMatch(/^configmaps +cm +v1 +true +ConfigMap$/m);
    expect(resources).toMatch(/^deployments +deploy +apps\/v1 +true +Deployment$/m);
    expect(resources).toMatch(/^customresourcedefinitions +crd,crds +apiextensions\.k8s\.io\/v1 /m);
    expect((await kubectl('api-versions')).split('\n')).toContain('rbac.authorization.k8s.io/v1');
  });

  test('CLIENT-2: objects are created, printed in every format, and deleted', async () => {
    const path = configMap();
    expect(await kubectl('create', '-f', path)).toBe('configmap/c created');
    const twice = await begin(['create', '-f', path]).done;
    expect(twice.code).toBe(1);
    expect(twice.stderr).toContain('(AlreadyExists)');
    expect(twice.stderr).toContain('configmaps "c" already exists');
    expect(await kubectl('get', 'cm')).toMatch(/^NAME +DATA +AGE\nc +1 +\d+s$/);
    expect(await kubectl('get', 'cm', '-o', 'wide')).toMatch(/^NAME +DATA +AGE\nc +1 +\d+s$/);
    expect(await kubectl('get', 'cm', '-A', '--no-headers')).toMatch(/ c +1 +\d+s$/m);
    expect(await kubectl('get', 'cm', 'c', '-o', 'name')).toBe('configmap/c');
    expect(JSON.parse(await kubectl('get', 'cm', 'c', '-o', 'json'))).toMatchObject({
      kind: 'ConfigMap',
      data: { a: '1' },
    });
    expect(await kubectl('get', 'cm', 'c', '-o', 'yaml')).toMatch(/^data:\n {2}a: "1"$/m);
    expect(await kubectl('describe', 'cm', 'c')).toMatch(/^Name: +c$/m);
    expect(await kubectl('delete', 'cm', 'c')).toBe('configmap "c" deleted');
    const gone = await begin(['get', 'cm', 'c']).done;
    expect(gone.stderr).toBe('Error from server (NotFound): configmaps "c" not found\n');
  });

  test('CLIENT-2: create with arguments sends protobuf for typed clients', async () => {
    expect(await kubectl('create', 'configmap', 'p', '--from-literal=k=v')).toBe(
      'configmap/p created',
    );
    expect(await kubectl('get', 'configmap', 'p', '-o', 'jsonpath={.data}')).toBe('{"k":"v"}');
    expect(await kubectl('create', 'secret', 'generic', 's', '--from-literal=k=v')).toBe(
      'secret/s created',
    );
    expect(await kubectl('create', 'serviceaccount', 'robot')).toBe('serviceaccount/robot created');
    const image = ['create', 'deployment', 'd', '--image=nginx', '--replicas=2'];
    expect(await kubectl(...image)).toBe('deployment.apps/d created');
    expect(await kubectl('get', 'deployment', 'd')).toMatch(
      /^NAME +READY +UP-TO-DATE +AVAILABLE +AGE\nd +0\/2 +0 +0 +\d+s$/,
    );
    expect(await kubectl('scale', 'deployment', 'd', '--replicas=3')).toBe(
      'deployment.apps/d scaled',
    );
    expect(await replicasOf('d')).toBe(3);
  });

  test('CLIENT-2: patch accepts all three patch types', async () => {
    await createConfigMap();
    const patch = (...args: string[]) => kubectl('patch', 'cm', 'c', ...args);
    expect(await patch('-p', '{"data":{"b":"2"}}')).toBe('configmap/c patched');
    expect(await patch('--type=merge', '-p', '{"data":{"a":null}}')).toBe('configmap/c patched');
    const add = '[{"op":"add","path":"/data/z","value":"9"}]';
    expect(await patch('--type=json', '-p', add)).toBe('configmap/c patched');
    expect(await dataOf('c')).toEqual({ b: '2', z: '9' });
    expect(await patch('--type=merge', '-p', '{"data":{"b":"2"}}')).toBe(
      'configmap/c patched (no change)',
    );
  });

  test('CLIENT-2: apply creates or changes an object, and diff shows the difference', async () => {
    expect(await kubectl('apply', '-f', deployment(2))).toBe('deployment.apps/web created');
    expect(await kubectl('apply', '-f', deployment(2))).toBe('deployment.apps/web unchanged');
    expect((await begin(['diff', '-f', deployment(2)]).done).code).toBe(0);
    const differs = await begin(['diff', '-f', deployment(3)]).done;
    expect(differs.code).toBe(1);
    expect(differs.stdout).toMatch(/^-{1} {2}replicas: 2\n\+ {2}replicas: 3$/m);
    expect(await kubectl('apply', '-f', deployment(3))).toBe('deployment.apps/web configured');
  });

  test('CLIENT-2: apply --server-side names a conflicting manager; force overrides it', async () => {
    const apply = (...args: string[]) => ['apply', '--server-side', ...args, '-f'];
    expect(await kubectl(...apply(), deployment(2))).toBe('deployment.apps/web serverside-applied');
    const applyAsOther = apply('--field-manager=other');
    const conflict = await begin([...applyAsOther, deployment(4)]).done;
    expect(conflict.code).toBe(1);
    expect(conflict.stderr).toContain(
      'Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas',
    );
    expect(
      await kubectl(...apply('--field-manager=other', '--force-conflicts'), deployment(4)),
    ).toBe('deployment.apps/web serverside-applied');
    expect(await replicasOf('web')).toBe(4);
  });

  test('CLIENT-2: migrating from client-side to server-side apply causes no conflict', async () => {
    await kubectl('apply', '-f', deployment(2));
    const { code, stderr, stdout } = await begin(['apply', '--server-side', '-f', deployment(3)])
      .done;
    expect({ code, stderr, stdout }).toEqual({
      code: 0,
      stderr: '',
      stdout: 'deployment.apps/web serverside-applied\n',
    });
  });

  test('CLIENT-2: edit, replace, label, and annotate change an object', async () => {
    await createConfigMap();
    const editor = `sh ${file('edit.sh', "sed -i 's/^  a:/  edited:/' $1")}`;
    const edited = await begin(['edit', 'cm', 'c'], { editor }).done;
    expect(edited).toMatchObject({ code: 0, stdout: 'configmap/c edited\n' });
    expect(await dataOf('c')).toEqual({ edited: '1' });
    expect(await kubectl('replace', '-f', configMap('{r: "2"}'))).toBe('configmap/c replaced');
    expect(await dataOf('c')).toEqual({ r: '2' });
    expect(await kubectl('label', 'cm', 'c', 'colour=red')).toBe('configmap/c labeled');
    expect(await kubectl('get', 'cm', '-l', 'colour=red', '-o', 'name')).toBe('configmap/c');
    expect(await kubectl('label', 'cm', 'c', 'colour-')).toBe('configmap/c unlabeled');
    expect(await kubectl('annotate', 'cm', 'c', 'note=well')).toBe('configmap/c annotated');
  });

  test('CLIENT-2: an unknown field is refused before it is stored', async () => {
    const path = file(
      'unknown.yaml',
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndatas: {a: "1"}\n',
    );
    const { code, stderr } = await begin(['create', '-f', path]).done;
    expect(code).toBe(1);
    expect(stderr).toContain('unknown field "datas"');
    expect((await server.get(`${configMaps()}/c`)).status).toBe(404);
  });

  test('CLIENT-2: get --watch prints a row for each change', async () => {
    const watch = begin(['get', 'cm', '--watch', '--output-watch-events']);
    try {
      await kubectl('create', '-f', configMap());
      await kubectl('delete', 'cm', 'c');
      await expect.poll(() => watch.output.stdout).toMatch(/DELETED +c +1 /);
      expect(watch.output.stdout).toMatch(/^EVENT +NAME +DATA +AGE\nADDED +c +1 +\d+s\n/);
    } finally {
      watch.kill();
      await watch.done;
    }
  });

  test('CLIENT-2: a list of several megabytes arrives complete', async () => {
    const filler = 'x'.repeat(20_000);
    const names = Array.from({ length: 150 }, (_, index) => `large-${100 + index}`);
    for (const name of names) {
      const body = { metadata: { name }, data: { filler } };
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      expect((await server.post(path, JSON.stringify(body))).status).toBe(201);
    }
    const listed = await kubectl('get', 'cm', '--chunk-size=0', '-o', 'json');
    const { items } = JSON.parse(listed) as {
      items: { metadata: { name: string }; data: { filler?: string } }[];
    };
    const large = items.filter(({ data }) => data.filler === filler);
    expect(large.map(({ metadata }) => metadata.name)).toEqual(names);
    expect(listed.length).toBeGreaterThan(3_000_000);
  });

  test('CLIENT-2: wait awaits a condition, and delete accepts a selector', async () => {
    await createConfigMap({ gone: 'soon' });
    expect(await kubectl('wait', '--for=jsonpath={.data.a}=1', 'cm/c', '--timeout=5s')).toBe(
      'configmap/c condition met',
    );
    expect(await kubectl('delete', 'cm', '-l', 'gone=soon')).toBe('configmap "c" deleted');
  });

  test('CLIENT-2: auth can-i reports the rights of the user', async () => {
    expect(await kubectl('auth', 'can-i', 'create', 'pods')).toBe('yes');
  });

  test('CLIENT-2: auth can-i --as reports the rights of another user', async () => {
    const refused = await begin(['auth', 'can-i', 'create', 'pods', '--as=nobody']).done;
    expect(refused).toMatchObject({ code: 1, stdout: 'no\n' });
  });

  test('CLIENT-2: explain describes a field', async () => {
    const text = await kubectl('explain', 'deployment.spec.replicas');
    expect(text).toMatch(/^GROUP: +apps$/m);
    expect(text).toMatch(/^FIELD: replicas <integer>$/m);
  });

  test('CLIENT-2: a CustomResourceDefinition adds a kind', async () => {
    const definition = file(
      'crd.yaml',
      `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.harbour.example.com}
spec:
  group: harbour.example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, shortNames: [bt]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Length, type: integer, jsonPath: .spec.length}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {length: {type: integer, minimum: 1}}
`,
    );
    const boat = (length: number) =>
      file(
        'boat.yaml',
        `apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: b}
spec: {length: ${length}}
`,
      );
    expect(await kubectl('apply', '-f', definition)).toBe(
      'customresourcedefinition.apiextensions.k8s.io/boats.harbour.example.com created',
    );
    const established = ['--for=condition=Established', 'crd/boats.harbour.example.com'];
    await kubectl('wait', ...established, '--timeout=10s');
    expect(await kubectl('apply', '-f', boat(7))).toBe('boat.harbour.example.com/b created');
    expect(await kubectl('get', 'bt')).toMatch(/^NAME +LENGTH\nb +7$/);
    const wrong = await begin(['apply', '-f', boat(0)]).done;
    expect(wrong.stderr).toContain(
      'spec.length: Invalid value: 0: spec.length in body should be greater than or equal to 1',
    );
    expect(await kubectl('delete', 'crd', 'boats.harbour.example.com')).toContain('deleted');
  });
});
