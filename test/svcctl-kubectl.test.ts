import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshNamespace, startTestServer, type TestServer } from './harness.ts';
import { type Kubectl, kubectlIsHere, kubectlOf } from './kubectl.ts';
import { type Outcome, type SvcctlHome, svcctlFor } from './svcctl-run.ts';

/**
 * Lines that both clients are given, each in a namespace of its own, in this order. A line may end
 * with what it reads from standard input.
 */
const lines: readonly (readonly [line: string, stdin?: string])[] = [
  ['create cm x --from-literal=a=1 --from-literal=b=two'],
  ['create cm x --from-literal=a=1'],
  ['label cm x tier=gold'],
  ['label cm x tier=tin'],
  ['label cm x nope-'],
  ['label cm x --list'],
  ['annotate cm x note=hi'],
  ['get cm x'],
  ['get cm x -o wide --show-labels'],
  ['get cm x -L tier --no-headers'],
  ['get cm -l tier=gold -o name'],
  ['get cm x -o yaml'],
  ['get cm x -o json'],
  ['get cm -o json'],
  ['get cm x -o jsonpath={.data.b}'],
  ['get cm -o jsonpath={range.items[*]}{.metadata.name}{end}'],
  ['get cm x -o custom-columns=N:.metadata.name,B:.data.b'],
  ['get cm -o custom-columns=N:.metadata.name --no-headers'],
  ['get cm x nope'],
  ['get nope'],
  ['get pods'],
  ['get cm --ignore-not-found nope'],
  ['patch cm x --type=merge -p {"data":{"b":"2"}}'],
  ['patch cm x --type=merge -p {"data":{"b":"2"}}'],
  ['patch cm x --type=json -p [{"op":"remove","path":"/data/a"}]'],
  ['patch cm nope -p {}'],
  [
    'apply --server-side -f -',
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s"},"data":{"a":"1"}}',
  ],
  [
    'replace -f -',
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s"},"data":{"a":"3"}}',
  ],
  ['create -f -', '{"apiVersion":"v1","metadata":{"name":"x"}}'],
  ['diff --server-side -f -', '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s"}}'],
  ['wait cm/x --for=jsonpath={.data.b}=2 --timeout=5s'],
  ['wait cm/x --for=jsonpath={.data.b}=9 --timeout=50ms'],
  ['wait cm/nope --for=delete --timeout=1s'],
  ['wait cm/nope --for=jsonpath={.data.b}=9 --timeout=1s'],
  ['edit cm x'],
  ['api-resources --api-group=apps'],
  ['api-resources --namespaced=false --api-group=rbac.authorization.k8s.io -o name'],
  ['api-versions'],
  ['auth can-i get pods'],
  ['auth can-i get nodes'],
  ['auth can-i get nope.foo.io'],
  ['auth can-i frob pods --as=jane'],
  ['auth can-i --list --as=jane'],
  ['auth can-i --list -q'],
  ['auth whoami --as=jane --as-group=a --as-uid=7'],
  ['auth whoami -o yaml'],
  ['create role r --verb=get,list --resource=pods,deployments.apps/scale'],
  ['get role r -o yaml'],
  ['create role r --verb=get'],
  ['create role s --verb=frob --resource=pods'],
  ['create role s --verb=bind --resource=pods'],
  ['create rolebinding b --role=r --user=u --group=g --serviceaccount=a:b'],
  ['create rolebinding b --role=r'],
  ['get rolebinding b -o yaml'],
  ['create sa y'],
  ['create sa y'],
  ['create token y --duration=1m'],
  ['create token y --bound-object-name=z'],
  ['config get-contexts'],
  ['config view'],
  ['config use-context nope'],
  ['config get-users'],
  ['get --raw /nope'],
  ['describe cm x'],
  ['describe cm,secret -l tier=gold'],
  ['create secret generic s --from-literal=pw=hunter2'],
  ['describe secret s'],
  ['describe role r'],
  ['describe rolebinding b'],
  ['describe clusterrole admin'],
  ['describe clusterrole system:discovery'],
  ['describe clusterrolebinding system:basic-user'],
  ['describe flowschema system-leader-election'],
  ['describe cm nope'],
  ['delete cm x'],
  ['delete cm x'],
  ['delete sa y -o name'],
];

describe.skipIf(!kubectlIsHere)('beside kubectl', () => {
  let server: TestServer;
  let home: SvcctlHome;
  let client: Kubectl;
  const namespaces = { kubectl: '', svcctl: '' };
  beforeAll(async () => {
    server = await startTestServer({ dialect: 'kubernetes' });
    home = svcctlFor(server);
    client = kubectlOf(server);
    for (const tool of ['kubectl', 'svcctl'] as const) {
      namespaces[tool] = await freshNamespace(server);
    }
  });
  afterAll(async () => {
    home.remove();
    client.remove();
    await server.stop();
  });

  async function kubectl(words: readonly string[], stdin: string): Promise<Outcome> {
    const { code, stdout, stderr } = await client.run(words, { stdin, editor: 'true' });
    return { code: code ?? 1, out: stdout, err: stderr };
  }

  /** Without what must differ: names, times, identities, and how widely columns are set. */
  function comparable({ code, out, err }: Outcome, namespace: string): Outcome {
    const plain = (text: string) =>
      text
        .replaceAll(namespace, 'NAMESPACE')
        .replaceAll('kubectl', 'svcctl')
        .replace(/^[EIW]\d{4} .*\n/gm, '')
        .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, 'TIME')
        .replace(/^[-+]{3} .*\n/gm, '')
        .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID')
        .replace(/(resourceVersion"?: )"\d+"/g, '$1"VERSION"')
        .replace(/\b\d+s\b/g, 'AGE')
        .replace(/ {2,}/g, '  ')
        .trim();
    return { code, out: plain(out), err: plain(err) };
  }

  const cases = lines.map(([line, stdin = '']) => [line, stdin] as const);
  test.each(cases)('CLIENT-1: as kubectl says: %s', async (line, stdin) => {
    const words = (namespace: string) => [...line.split(' '), `--namespace=${namespace}`];
    const theirs = await kubectl(words(namespaces.kubectl), stdin);
    const ours = await home.run(words(namespaces.svcctl), stdin);
    expect(comparable(ours, namespaces.svcctl)).toEqual(comparable(theirs, namespaces.kubectl));
  });
});
