import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { documents, printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { listenLocally } from '../support/local-server.ts';
import { svcctlOn } from './svcctl-run.ts';

const map = (name: string, more: object = {}) => {
  const { metadata = {}, ...rest } = more as { metadata?: object };
  const type = { apiVersion: 'v1', kind: 'ConfigMap' };
  return { ...type, metadata: { name, ...metadata }, data: { a: '1' }, ...rest };
};
const named = (line: string, name: string): [string, string] => [
  `${line} -f -`,
  documents(map(name)),
];

const annotation = 'kubectl.kubernetes.io/last-applied-configuration';
const applied = (name: string, a: string) =>
  map(name, { metadata: { annotations: { [annotation]: '{"old":true}' } }, data: { a } });
const pruned = (name: string) => map(name, { metadata: { labels: { prune: 'yes' } } });

const ports = ['TCP', 'UDP'].map((protocol, at) => ({
  name: `c${at}`,
  image: 'i',
  ports: [{ containerPort: 80, protocol }],
}));
const podOfPorts = {
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', labels: { a: 'b' } } },
  spec: { containers: ports },
};

const role = (rules: readonly string[]) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: 'arguments-@ns', namespace: 'elsewhere' },
  rules: rules.map((verb) => ({ apiGroups: [''], resources: ['pods'], verbs: [verb] })),
});

printsLikeKubectl(
  'arguments',
  [
    // Patterns for files.
    ['create -f @files/map-*.json'],
    ['get -f @files/map-[ab].json -o name'],
    ['get -f @files/map-[^a].json -o name'],
    ['get -f @files/ma?-\\b.json -o name'],
    ['get -f @files/*/map-*.json -o name'],
    ['get -f @files/map-[.json'],
    ['get -f @files/map-[-.json'],
    ['get -f /nope/none -f /nope/nothing'],
    ['get -f @files/map-a.json cm/x'],
    ['get -f @files/map-a.json cm x'],
    ['get pods,cm/x'],
    // Cluster-scoped objects with a namespace.
    ['create -f -', documents(role(['get']))],
    ['apply --server-side=false -f -', documents(role(['get', 'list']))],
    ['apply view-last-applied clusterrole/arguments-@ns -o json'],
    ['replace -f -', documents(role(['get']))],
    ['get -f - -o name', documents(role([]))],
    ['create --dry-run=client -o jsonpath={.metadata} -f -', documents(role([]))],
    ['delete -f -', documents(role([]))],
    [
      'create -f -',
      documents(
        map('moved', { metadata: { namespace: 'elsewhere' } }),
        map('kept'),
        map('gone', { metadata: { namespace: 'elsewhere' } }),
        map('after'),
      ),
    ],
    ['get cm kept moved after -o name'],
    ['label --local a=b -o name -f -', documents(map('x', { metadata: { namespace: 'other' } }))],
    // Objects whose names are empty or no part of a path.
    ...['create', 'replace', 'delete', 'diff', 'diff --server-side'].flatMap((line) =>
      ['', '..', 'a/b'].map((name): [string, string] => named(line, name)),
    ),
    ...['apply --server-side', 'apply --server-side=false', 'label a=b'].flatMap((line) =>
      ['', '..', 'a%b'].map((name): [string, string] => named(line, name)),
    ),
    ['get cm kept after -o name'],
    // Values that are checked before anything is written.
    ['create -f - -o nope', documents(map('checked'))],
    ['create cm checked -o nope'],
    ['create cm checked -o go-template={{'],
    ['create deployment d --image=i'],
    ['set image deploy/d i=j -o nope'],
    ['scale deploy/d --replicas=3 -o nope'],
    ['annotate deploy/d a=b -o nope'],
    ['expose deploy/d --port=80 -o nope'],
    ['get cm checked'],
    ['create -f -', documents(podOfPorts)],
    ['expose pod p'],
    ['get svc p -o jsonpath={.spec.ports}'],
    ['get deploy d -o jsonpath={..image}{.spec.replicas}{.metadata.annotations.a}'],
    ['create -f - --dry-run=nope', documents(map('x'), map('y'))],
    ['apply --server-side=false -f - --validate=nope', documents(map('x'), map('y'))],
    ['replace -f - --validate=nope', documents(map('x'), map('y'))],
    ['patch cm map-a map-b -p {} --dry-run=nope'],
    ['set image deploy/d deploy/e i=k --dry-run=nope'],
    ['create --validate=false -f -', '{"apiVersion":"v1"}'],
    ['create --validate=warn -f -', '{"apiVersion":"v1"}'],
    ['label --local a=b -f -', '{"apiVersion":"v1"}'],
    ['label --local a=b -f -', '# nothing'],
    ['patch --local -p {} -f -', '# nothing'],
    // The last-applied configuration of a file that has one.
    ['create -f -', documents(applied('applied', '1'))],
    ['apply view-last-applied cm/applied'],
    ['replace -f -', documents(applied('applied', '2'))],
    ['apply view-last-applied cm/applied'],
    ['edit cm applied --record'],
    ['apply edit-last-applied cm/applied --record'],
    // Pruning.
    ['apply --server-side=false -f - --prune --all --force', documents(map('x'))],
    ['apply --server-side=false -f - -o name', documents(pruned('one'), pruned('two'))],
    ['apply --server-side=false -f - --prune -l prune=yes -o name', documents(pruned('one'))],
    ['apply --server-side=false -f -', documents(pruned('three'))],
    [
      'apply --server-side=false -f - --prune -l prune=yes -o jsonpath={.metadata.name}',
      documents(pruned('one')),
    ],
    // Raw paths.
    ['create --raw /api/v1/namespaces -f /nope/none'],
    ['create --raw /api/v1/namespaces -f http://localhost/x'],
    ['replace --raw /api/v1/namespaces -f http://localhost/x'],
    ['delete --raw /api/v1/namespaces -f http://localhost/x'],
    ['delete --raw /api/v1/namespaces/@ns/configmaps/map-a'],
    // Integers.
    ['scale deploy/d --replicas=0x2'],
    ['scale deploy/d --replicas=010'],
    ['get deploy d -o jsonpath={.spec.replicas}'],
    ['scale deploy/d --replicas=08'],
    ['scale deploy/d --replicas=9223372036854775808'],
    ['create deployment e --image=i --replicas=2147483648'],
    ['create priorityclass p --value=1_0 --dry-run=client -o jsonpath={.value}'],
    // Values of other flags.
    ['create role r --verb=get --resource=pods,po --dry-run=client -o jsonpath={.rules}'],
    ['create role r --verb=get --resource=pods,* --dry-run=client -o jsonpath={.rules}'],
    ['create ingress i --rule=a:80/=s:80 --dry-run=client'],
    ['create ingress i --rule=a/=s.t:80 --dry-run=client'],
    [
      'create secret docker-registry s --docker-username=u --docker-password=a<b&c ' +
        '--append-hash --dry-run=client -o name',
    ],
    ['set image deploy/d i*=x'],
    ['create cm q --from-file="@files/a,b.txt",k=@files/a,b.txt'],
    ['create cm q --from-file="@files/a,b.txt" --dry-run=client -o jsonpath={.data}'],
    ['delete cm none --cascade=0 --ignore-not-found'],
    ['delete cm kept --now --grace-period=-1 --dry-run=client'],
    ['label cm kept a=b --resource-version= -o name'],
    ['taint nodes node/none a=b:NoSchedule'],
    ['taint nodes none a a=b_:NoSchedule'],
    ['config view -o json --kubeconfig=@files/config.json'],
    ['config view -o json --raw --minify --kubeconfig=@files/config.json'],
    // A user who may delete, but not read.
    ['create role deleter --verb=delete --resource=configmaps'],
    ['create rolebinding deleter --role=deleter --user=joe'],
    ['delete cm kept --as=joe'],
  ],
  {
    texts: { 'a,b.txt': 'text' },
    files: {
      'map-a.json': map('map-a'),
      'map-b.json': map('map-b'),
      'config.json': {
        users: [
          {
            user: {
              exec: { env: [{ value: 'v', name: 'n' }], command: 'c', apiVersion: 'v1' },
              token: 't',
              'as-user-extra': { b: ['1'], a: ['2'] },
            },
            name: 'u',
          },
        ],
        'current-context': 'x',
        contexts: [{ name: 'x', context: { user: 'u', cluster: 'k' } }],
        clusters: [{ cluster: { 'proxy-url': 'http://p', server: 'https://s' }, name: 'k' }],
        preferences: { colors: true },
        kind: 'Config',
        apiVersion: 'v1',
      },
    },
  },
);

describe('CLIENT-1: arguments', () => {
  const on = svcctlOn('kubernetes');

  test('CLIENT-1: a blank selector selects nothing that is written', async () => {
    await on.ctl('create cm x');
    const refused = 'error: resource(s) were provided, but no name was specified\n';
    for (const line of ['delete cm -l', 'label cm a=b -l', 'delete cm --field-selector']) {
      const { code, err } = await on.ctl([...line.split(' '), ' ']);
      expect({ code, err }).toEqual({ code: 1, err: refused });
    }
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } };
    expect((await on.server.post('/api/v1/nodes', node)).status).toBe(201);
    for (const line of ['drain -l', 'cordon -l', 'taint nodes a=b:NoSchedule -l']) {
      expect((await on.ctl([...line.split(' '), ' '])).err).toBe(refused);
    }
    expect((await on.ctl('get cm x -o name')).out).toBe('configmap/x\n');
    const { out } = await on.ctl('get node n -o jsonpath={.spec}');
    expect(out).not.toMatch(/unschedulable|"a"/);
  });

  test('CLIENT-1: replace --force of an object without a name deletes nothing', async () => {
    await on.ctl('create cm x');
    for (const [name, why] of [
      ['', 'resource name may not be empty'],
      ['.', 'invalid resource name ".": [may not be \'.\']'],
    ] as const) {
      expect(await on.ctl('replace --force -f -', documents(map(name)))).toEqual({
        code: 1,
        out: '',
        err: `error: error when deleting "STDIN": ${why}\n`,
      });
    }
    expect((await on.ctl('get cm x -o name')).out).toBe('configmap/x\n');
  });

  test('CLIENT-1: -f reads UTF-16, and the readable files of folders', async () => {
    const { home } = on;
    const text = `\ufeff${JSON.stringify(map('wide', { data: { a: 'ä' } }))}`;
    const little = Buffer.from(text, 'utf16le');
    mkdirSync(join(home.folder, 'folder/empty'), { recursive: true });
    writeFileSync(join(home.folder, 'folder/a.json'), little);
    writeFileSync(join(home.folder, 'folder/b.json'), Buffer.from(little).swap16());
    symlinkSync('nowhere', join(home.folder, 'folder/c.yaml'));
    expect(await on.ctl('apply -f folder/a.json -f folder/empty -f folder')).toEqual({
      code: 1,
      out: 'configmap/wide serverside-applied\n'.repeat(3),
      err: 'error: open folder/c.yaml: no such file or directory\n',
    });
    expect((await on.ctl('get cm wide -o jsonpath={.data.a}')).out).toBe('ä');
    expect((await on.ctl('apply -f folder/empty')).err).toBe(
      'error: error reading [folder/empty]: recognized file extensions are [.json .yaml .yml]\n',
    );
  });

  test('CLIENT-1: -f reports patterns without files and paths that cannot be followed', async () => {
    const { home } = on;
    home.write('n-b.json', JSON.stringify(map('n')));
    const long = 'n'.repeat(300);
    const errorOf = async (line: string) => (await on.ctl(`apply --dry-run=server ${line}`)).err;
    const missing = (file: string) => `error: the path "${file}" does not exist\n`;
    expect(await errorOf('-f n-[a-c].json')).toBe('');
    expect(await errorOf('-f n-[z-ab].json')).toBe('');
    expect(await errorOf('-f n-[^z-a].json')).toBe('');
    expect(await errorOf('-f n-[z-a].json')).toBe(missing('n-[z-a].json'));
    expect(await errorOf('-f n-b.json*/')).toBe(missing('n-b.json*/'));
    for (const [file, reason] of [
      ['n-b.json/*', 'not a directory'],
      [long, 'file name too long'],
    ] as const) {
      expect(await errorOf(`-f ${file}`)).toBe(
        `error: the path "${file}" cannot be accessed: stat ${file}: ${reason}\n`,
      );
    }
    mkdirSync(join(home.folder, 'none'));
    expect(await errorOf('-f absent -f none')).toBe(missing('absent'));
  });

  test('CLIENT-1: credentials in a URL are sent to its server', async () => {
    const seen: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.end(documents(map('secured')));
    });
    const port = await listenLocally(server);
    onTestFinished(() => void server.close());
    await on.ctl(`create -f http://joe:p%40ss@127.0.0.1:${port}/x`);
    await on.ctl(`create -f http://joe:p%ff@127.0.0.1:${port}/x`);
    const expected = [Buffer.from('joe:p@ss'), Buffer.from('joe:p\xff', 'latin1')];
    expect(seen).toEqual(expected.map((bytes) => `Basic ${bytes.toString('base64')}`));
    const malformed = `http://joe:p%4@127.0.0.1:${port}/x`;
    expect((await on.ctl(`create -f ${malformed}`)).err).toBe(
      `error: the URL passed to filename "${malformed}" is not valid\n`,
    );
  });
});
