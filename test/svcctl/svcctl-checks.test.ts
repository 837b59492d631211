import { expect, test } from 'vitest';
import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { svcctlOn } from './svcctl-run.ts';

const pod = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p' },
  spec: {
    automountServiceAccountToken: false,
    containers: ['c', 'd'].map((name) => ({ name, image: 'i' })),
    initContainers: [{ name: 'e', image: 'i', ports: [{ containerPort: 80, name: 'first' }] }],
  },
});

const serviceWithoutSelector = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'e' },
  spec: { ports: [{ port: 80 }] },
});

/** Overrides that Go cannot decode, or that a patch cannot be applied with. */
const misfits = {
  run: [
    '{"spec":5}',
    '{"spec":{"containers":[5]}}',
    '{"spec":{"containers":[{"image":5}]}}',
    '{"spec":{"terminationGracePeriodSeconds":5.5}}',
    '{"spec":{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}}',
    '{"metadata":{"labels":{"a":true}}}',
    '{"metadata":{"creationTimestamp":"x"}}',
    '{"kind":5}',
    '{"apiVersion":"a/b/c"}',
    '{"apiVersion":"v2"}',
    '{"spec":{"containers":[{"image":"z"}]}} --override-type=strategic',
    '[{"op":"replace","path":"/spec","value":5}] --override-type=json',
    '[{"op":"add"}] --override-type=json',
  ],
  expose: ['{"spec":{"ports":[{"port":"80"}]}}', '{"kind":"Nope"}'],
};

printsLikeKubectl('checks', [
  ['create sa default'],
  ['create -f -', pod],
  ['create cm c'],
  ['create deployment d --image=i'],
  // Which check fails first.
  ['exec p -c none -- ls'],
  ['attach p -c none'],
  ['port-forward p none'],
  ['port-forward p first'],
  ['port-forward none a:b'],
  ['cp @files/none p:/x'],
  ['cp @files/none none:/x'],
  ['create --raw /none'],
  ['create --raw /none -f a -f b'],
  ['create --raw /none -f - --edit'],
  ['create --raw /none -f - -o name'],
  // Objects without Pods.
  ['create -f -', serviceWithoutSelector],
  ...['exec cm/c -- ls', 'attach cm/c', 'port-forward cm/c 80', 'logs cm/c', 'logs svc/e'].map(
    (line): [string] => [line],
  ),
  ['exec svc/e -- ls'],
  ['create clusterrole r --aggregation-rule=a'],
  // Kinds without revisions.
  ...['history', 'undo', 'status'].flatMap((verb): [string][] => [
    [`rollout ${verb} cm/c`],
    [`rollout ${verb} pod/p`],
    [`rollout ${verb} sa/default`],
  ]),
  ['create role r --verb=get --resource=pods'],
  ['rollout history role r'],
  ['rollout undo role r'],
  // RESOURCE.VERSION.GROUP.
  ...[
    'cm.v1',
    'cm.v1.',
    'configmaps.',
    'deploy.v1.',
    'deploy.v1.apps',
    'deployments.v2.apps',
    'deploy.app',
    'deployments.v1.app',
    'Deployment.v1.apps',
    'deploy.APPS',
    '.cm',
  ].map((word): [string] => [`get ${word} -o name`]),
  ...['.pod', 'pod..spec', 'pod.spec..containers', '.', 'none.v1'].map((word): [string] => [
    `explain ${word}`,
  ]),
  // Selectors and patches.
  ['create service clusterip s --tcp=80'],
  ...['a!=b', 'a', 'a=b,!c,d!=e', 'a=', '=b'].map((selector): [string] => [
    `set selector svc s ${selector}`,
  ]),
  ...['{', '5', 'null', '"a"', 'a:b', '[]'].flatMap((patch): [string][] =>
    ['json', 'strategic', ...(patch === '[]' ? [] : ['merge'])].map((type) => [
      `run q --image=i --dry-run=client -o name --overrides=${patch} --override-type=${type}`,
    ]),
  ),
  ['expose deploy d --port=80 --overrides={'],
  ...misfits.run.map((patch): [string] => [
    `run q --image=i --dry-run=client -o name --overrides=${patch}`,
  ]),
  ...misfits.expose.map((patch): [string] => [
    `expose deploy d --port=80 --dry-run=client -o name --overrides=${patch}`,
  ]),
  // Kubeconfigs.
  ['config set none q'],
  ['config unset none.b.c'],
  ['cluster-info --context=none'],
  ['get cm --context=none'],
  ['version -o none'],
]);

const on = svcctlOn('kubernetes');

test('CLIENT-1: an editor that cannot be started is reported like kubectl does', async () => {
  await on.ctl('create cm c');
  for (const [editor, problem] of [
    ['none', 'unable to launch'],
    ['/none/none', 'there was a problem with'],
  ] as const) {
    on.home.env = { EDITOR: editor };
    const { code, err } = await on.ctl('edit cm c');
    expect({ code, err }).toEqual({ code: 1, err: `error: ${problem} the editor "${editor}"\n` });
  }
  on.home.env = {};
});

test('CLIENT-1: a context that does not exist is named as kubectl names it', async () => {
  const errorOf = async (line: string) => (await on.home.run(line)).err;
  const missing = 'Error in configuration: context was not found for specified context: none\n';
  const config = on.home.write('cm.json', serviceWithoutSelector);
  for (const line of [
    'get cm',
    'apply view-last-applied cm c',
    'create token t',
    'auth reconcile -f none',
    `label --local -f ${config} a=b`,
    `patch --local -f ${config} -p {}`,
  ]) {
    expect(await errorOf(`${line} --context=none`)).toBe(missing);
  }
  for (const line of [
    'cluster-info',
    'version',
    'create cm x',
    'create cm x --dry-run=client',
    `create -f ${config}`,
    'apply -f none',
    'replace -f none',
    'set env deploy/d a=b',
    'top node',
    'proxy',
    'debug p --image=i -n default',
    'get cm -n default',
  ]) {
    expect(await errorOf(`${line} --context=none`)).toContain(
      'error: context "none" does not exist\n',
    );
  }
});

test('CLIENT-1: clusters and users that do not exist are named with the context', async () => {
  const errorOf = async (line: string) => (await on.home.run(line)).err;
  const noServer = 'no server found for cluster "none"';
  expect(await errorOf('get cm --cluster=none --user=none')).toBe(`error: ${noServer}\n`);
  expect(await errorOf('get cm --user=none')).toBe('error: auth info "none" does not exist\n');
  expect(await errorOf('get cm --context=none --cluster=none --user=none')).toBe(
    'Error in configuration: \n* context was not found for specified context: none\n' +
      `* ${noServer}\n`,
  );
  expect(await errorOf('create cm c --cluster=none --user=none')).toBe(
    'error: auth info "none" does not exist\n',
  );
});

test('CLIENT-1: version prints versions as kubectl does, also without a server', async () => {
  const { out } = await on.home.run('version -o json');
  const { clientVersion, serverVersion } = JSON.parse(out);
  expect(Object.keys(clientVersion)).toEqual(['major', 'minor', 'gitVersion', 'platform']);
  const { major, minor, gitVersion } = clientVersion;
  expect(gitVersion.startsWith(`v${major}.${minor}.`)).toBe(true);
  expect(clientVersion.platform).toBe(serverVersion.platform);
  const yaml = await on.home.run('version --client -o yaml');
  expect(yaml.out.startsWith('clientVersion:\n  gitVersion: v')).toBe(true);
  expect(yaml.out.endsWith('\n\n')).toBe(true);
  const offline = await on.home.run('version -s https://127.0.0.1:1');
  expect(offline).toEqual({
    code: 1,
    out: `Client Version: ${gitVersion}\n`,
    err:
      'The connection to the server 127.0.0.1:1 was refused - ' +
      'did you specify the right host or port?\n',
  });
});
