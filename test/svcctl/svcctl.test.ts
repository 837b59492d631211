import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/harness.ts';
import { replaceIn, svcctlOn } from './svcctl-run.ts';

const map = (name: string, data: Record<string, string> = { a: '1' }, labels?: object) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, ...(labels && { labels }) },
    data,
  });

describe.each(dialectNames)('CLIENT-1: svcctl, dialect %s', (dialectName) => {
  const dialect = dialectOf(dialectName);
  const on = svcctlOn(dialectName);
  const { ctl } = on;

  describe('reading', () => {
    test('CLIENT-1: objects are created, read, and deleted', async () => {
      const made = await ctl('create -f -', `${map('x')}\n---\n${map('y')}`);
      expect(made).toEqual({ code: 0, out: 'configmap/x created\nconfigmap/y created\n', err: '' });
      expect((await ctl('create -f -', map('x'))).err).toBe(
        'Error from server (AlreadyExists): error when creating "STDIN": configmaps "x" already exists\n',
      );
      const table = await ctl('get configmaps');
      expect(table.err).toBe('');
      expect(table.out).toMatch(/^NAME +DATA +AGE\nx +1 +\d+s\ny +1 +\d+s\n$/);
      expect((await ctl('get cm -o name')).out).toBe('configmap/x\nconfigmap/y\n');
      expect((await ctl('delete cm x')).out).toMatch(/^configmap "x" deleted/);
      expect((await ctl('get cm x')).err).toBe(
        'Error from server (NotFound): configmaps "x" not found\n',
      );
      const file = on.home.write('y.json', map('y'));
      expect((await ctl(`delete -f ${file}`)).code).toBe(0);
      expect((await ctl('get cm')).err).toBe(`No resources found in ${on.namespace} namespace.\n`);
    });

    test('CLIENT-1: get prints every output format', async () => {
      await ctl('create -f -', map('x', { a: '1', b: 'two' }, { tier: 'gold' }));
      expect(JSON.parse((await ctl('get cm x -o json')).out)).toMatchObject({
        kind: 'ConfigMap',
        data: { a: '1', b: 'two' },
      });
      const yaml = (await ctl('get cm x -o yaml')).out;
      expect(yaml).toContain('apiVersion: v1\n');
      expect(yaml).toContain('data:\n  a: "1"\n  b: two\n');
      expect((await ctl('get cm x -o jsonpath={.data.b}')).out).toBe('two');
      expect((await ctl('get cm x -o custom-columns=N:.metadata.name,B:.data.b')).out).toMatch(
        /^N +B\nx +two\n$/,
      );
      expect((await ctl('get cm x -o wide --no-headers')).out).toMatch(/^x +2 +\d+s\n$/);
      expect((await ctl('get cm -L tier --show-labels')).out).toMatch(
        /TIER +LABELS\n.*gold +tier=gold/,
      );
      const list = JSON.parse((await ctl('get cm -l tier=gold -o json')).out);
      expect(list).toMatchObject({ kind: 'List', apiVersion: 'v1' });
      expect(list.items.length).toBe(1);
      expect((await ctl('get cm -l tier!=gold -o name')).out).toBe('');
      expect((await ctl('get cm --field-selector metadata.name=x -o name')).out).toBe(
        'configmap/x\n',
      );
    });

    test('CLIENT-1: get accepts several kinds, all namespaces, and raw paths', async () => {
      await ctl('create -f -', map('x'));
      await ctl('create secret generic s --from-literal=pw=hunter2');
      const both = await ctl('get cm,secrets --no-headers');
      expect(both.out).toMatch(/^configmap\/x .*\nsecret\/s +Opaque +1 +\d+s\n$/);
      const all = await on.home.run('get cm -A --no-headers');
      expect(all.out).toContain(`${on.namespace}   x`);
      expect(JSON.parse((await on.home.run('get --raw /version')).out).major).toBe('1');
      const roles = await on.home.run('get clusterroles view -o name');
      expect(roles.out).toBe(`clusterrole.${dialect.group('rbac.authorization')}/view\n`);
      expect((await on.home.run('get csidrivers')).err).toBe('No resources found\n');
    });

    test('CLIENT-1: describe shows an object and its events, but no secret values', async () => {
      await ctl('create -f -', map('x', { key: 'value' }));
      const uid = (await ctl('get cm x -o jsonpath={.metadata.uid}')).out;
      await on.server.post(`/api/v1/namespaces/${on.namespace}/events`, {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: 'e' },
        involvedObject: { kind: 'ConfigMap', namespace: on.namespace, name: 'x', uid },
        reason: 'Looked',
        message: 'seen it',
        type: 'Normal',
        source: { component: 'tester' },
        firstTimestamp: new Date().toISOString().replace(/\.\d+/, ''),
      });
      const { out } = await ctl('describe cm x');
      expect(out).toMatch(/^Name: +x\nNamespace: /);
      expect(out).toContain('value');
      expect(out).toMatch(/Normal +Looked +\d+s +tester +seen it/);
      await ctl('create secret generic s --from-literal=pw=hunter2');
      const secret = (await ctl('describe secret s')).out;
      expect(secret).toContain('7 bytes');
      expect(secret).not.toContain(Buffer.from('hunter2').toString('base64'));
      const applied = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 't' } };
      await ctl(
        'apply --server-side=false -f -',
        JSON.stringify({ ...applied, stringData: { pw: 'hunter3' } }),
      );
      expect((await ctl('describe secret t')).out).not.toContain('hunter3');
    });

    test('CLIENT-1: describe uses the formats of built-in kinds', async () => {
      const policy = {
        apiVersion: `${dialect.group('networking')}/v1`,
        kind: 'NetworkPolicy',
        metadata: { name: 'closed' },
        spec: { podSelector: {}, policyTypes: ['Ingress'] },
      };
      await ctl('create -f -', JSON.stringify(policy));
      expect((await ctl('describe netpol closed')).out).toContain('Not affecting egress traffic');
    });

    test('CLIENT-1: watch prints changes', async () => {
      const watch = on.home.start(
        `get cm -w --output-watch-events --no-headers -n ${on.namespace}`,
      );
      await ctl('create -f -', map('seen'));
      await eventually(async () => watch.out().includes('ADDED'), `ADDED; ${watch.err()}`);
      await ctl(['patch', 'cm', 'seen', '--type=merge', '-p', '{"data":{"a":"2","b":"3"}}']);
      await ctl('delete cm seen');
      await eventually(async () => watch.out().includes('DELETED'), 'DELETED');
      const types = watch
        .out()
        .split('\n')
        .filter(Boolean)
        .map((line) => line.split(' ')[0]);
      expect(types).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
      await watch.stop();
    });

    test('CLIENT-1: api-resources, api-versions, and version describe the server', async () => {
      const resources = (await on.home.run('api-resources')).out;
      expect(resources).toMatch(/^NAME +SHORTNAMES +APIVERSION +NAMESPACED +KIND\n/);
      expect(resources).toMatch(/configmaps +cm +v1 +true +ConfigMap/);
      const rbac = dialect.group('rbac.authorization');
      expect(resources).toMatch(new RegExp(`rolebindings +${rbac}/v1 +true +RoleBinding`));
      const some = await on.home.run(`api-resources --api-group=${rbac} -o name`);
      expect(some.out.split('\n')).toContain(`roles.${rbac}`);
      expect((await on.home.run('api-versions')).out.split('\n')).toContain(`${rbac}/v1`);
      expect((await on.home.run('version')).out).toMatch(/Server Version: v1\.\d+/);
    });
  });

  describe('writing', () => {
    test('CLIENT-1: patch accepts every patch type', async () => {
      await ctl('create -f -', map('x'));
      const patch = async (type: string, body: string) =>
        (await ctl(['patch', 'cm', 'x', `--type=${type}`, '-p', body])).out;
      expect(await patch('merge', '{"data":{"b":"2"}}')).toBe('configmap/x patched\n');
      expect(await patch('strategic', '{"data":{"c":"3"}}')).toBe('configmap/x patched\n');
      const json = '[{"op":"remove","path":"/data/a"}]';
      expect(await patch('json', json)).toBe('configmap/x patched\n');
      expect(await patch('merge', '{"data":{"b":"2"}}')).toBe('configmap/x patched (no change)\n');
      expect((await ctl('get cm x -o jsonpath={.data}')).out).toBe('{"b":"2","c":"3"}');
    });

    test('CLIENT-1: server-side apply names the owners in conflicts', async () => {
      const file = on.home.write('x.json', map('x', { a: '1', b: '1' }));
      expect((await ctl(`apply -f ${file}`)).out).toBe('configmap/x serverside-applied\n');
      const conflict = await ctl('apply --field-manager=other -f -', map('x', { a: '2', b: '2' }));
      expect(conflict.code).toBe(1);
      expect(conflict.err).toContain(
        `Apply failed with 2 conflicts: conflict with "${dialect.tool}"`,
      );
      expect(conflict.err).toContain('  - .data.a\n  - .data.b\n');
      const forced = await ctl(
        'apply --field-manager=other --force-conflicts -f -',
        map('x', { a: '2' }),
      );
      expect(forced.out).toBe('configmap/x serverside-applied\n');
      expect((await ctl('get cm x -o jsonpath={.data}')).out).toBe('{"a":"2","b":"1"}');
    });

    test('CLIENT-1: client-side apply records the object in its annotation', async () => {
      const apply = async (data: Record<string, string>) =>
        (await ctl('apply --client-side -f -', map('x', data))).out;
      expect(await apply({ a: '1', b: '1' })).toBe('configmap/x created\n');
      expect(await apply({ a: '1', b: '1' })).toBe('configmap/x unchanged\n');
      await ctl(['patch', 'cm', 'x', '--type=merge', '-p', '{"data":{"kept":"1"}}']);
      expect(await apply({ a: '2' })).toBe('configmap/x configured\n');
      expect((await ctl('get cm x -o jsonpath={.data}')).out).toBe('{"a":"2","kept":"1"}');
      const { annotations } = JSON.parse((await ctl('get cm x -o json')).out).metadata;
      const tool = dialectName === 'kubernetes' ? 'kubectl' : 'svcctl';
      const name = dialect.label('last-applied-configuration', tool);
      expect(JSON.parse(annotations[name]).data).toEqual({ a: '2' });
    });

    test('CLIENT-1: a list is applied as it was returned, without item types', async () => {
      await ctl('apply -f -', map('x', { a: '1' }));
      const path = `/api/v1/namespaces/${on.namespace}/configmaps?fieldSelector=metadata.name%3Dx`;
      const list = JSON.parse((await ctl(['get', '--raw', path])).out);
      const [{ data, metadata, ...more }] = list.items;
      expect(more).toEqual({});
      const items = [{ metadata: { name: metadata.name }, data: { ...data, a: '2' } }];
      const applied = await ctl('apply -f -', JSON.stringify({ ...list, items }));
      expect(applied.out).toBe('configmap/x serverside-applied\n');
      expect((await ctl('get cm x -o jsonpath={.data.a}')).out).toBe('2');
      expect((await ctl('get cm -o jsonpath={.items[*].kind}')).out).toContain('ConfigMap');
    });

    test('CLIENT-1: apply --prune deletes what the files no longer have', async () => {
      const both = `${map('p1', {}, { set: on.namespace })}\n---\n${map('p2', {}, { set: on.namespace })}`;
      await ctl('apply -f -', both);
      await ctl('create -f -', map('bystander', {}, { set: on.namespace }));
      const kept = map('p1', {}, { set: on.namespace });
      const pruned = await ctl(`apply -f - --prune -l set=${on.namespace}`, kept);
      expect(pruned.err).toBe('');
      expect(pruned.out).toContain('configmap/p2 pruned\n');
      expect((await ctl('get cm -o name')).out).toBe('configmap/bystander\nconfigmap/p1\n');
    });

    test('CLIENT-1: diff shows the changes of an apply', async () => {
      await ctl('apply -f -', map('x'));
      const same = await ctl('diff -f -', map('x'));
      expect(same).toMatchObject({ code: 0, out: '' });
      const changed = await ctl('diff -f -', map('x', { a: '2' }));
      expect(changed.code).toBe(1);
      expect(changed.out).toContain('-  a: "1"\n+  a: "2"\n');
      expect((await ctl('get cm x -o jsonpath={.data.a}')).out).toBe('1');
    });

    test('CLIENT-1: edit, label, and annotate', async () => {
      await ctl('create -f -', map('x'));
      on.home.edit = (file) => replaceIn(file, 'a: "1"', 'a: "9"');
      expect((await ctl('edit cm x')).out).toBe('configmap/x edited\n');
      on.home.edit = () => {};
      expect((await ctl('edit cm x')).err).toBe('Edit cancelled, no changes made.\n');
      expect((await ctl('label cm x tier=gold')).out).toBe('configmap/x labeled\n');
      expect((await ctl('label cm x tier=tin')).err).toBe(
        "error: 'tier' already has a value (gold), and --overwrite is false\n",
      );
      expect((await ctl('label cm x tier=tin --overwrite')).code).toBe(0);
      expect((await ctl('annotate cm x note=hi')).out).toBe('configmap/x annotated\n');
      expect((await ctl('label cm x tier-')).out).toBe('configmap/x unlabeled\n');
      const { body } = await on.server.get(`/api/v1/namespaces/${on.namespace}/configmaps/x`);
      expect(body.data.a).toBe('9');
      expect(body.metadata.annotations).toEqual({ note: 'hi' });
      expect(body.metadata.labels).toBeUndefined();
    });

    test('CLIENT-1: dry runs store nothing; unknown fields are refused or warned about', async () => {
      const dry = await ctl('create cm x --from-literal=a=b --dry-run=server -o name');
      expect(dry).toEqual({ code: 0, out: 'configmap/x\n', err: '' });
      expect((await ctl('get cm x')).code).toBe(1);
      const odd = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"o"},"dta":{}}';
      const strict = await ctl('create -f -', odd);
      expect(strict.code).toBe(1);
      expect(strict.err).toContain('unknown field "dta"');
      const warned = await ctl('create -f - --validate=warn', odd);
      expect(warned.code).toBe(0);
      expect(warned.err).toContain('Warning: unknown field "dta"');
    });

    test('CLIENT-1: wait waits for creation, fields, and deletion', async () => {
      const creation = ctl('wait cm/late --for=create --timeout=10s');
      await ctl('create -f -', map('late'));
      expect(await creation).toMatchObject({ code: 0, out: 'configmap/late condition met\n' });
      const change = ctl('wait cm/late --for=jsonpath={.data.a}=2 --timeout=10s');
      await ctl(['patch', 'cm', 'late', '--type=merge', '-p', '{"data":{"a":"2"}}']);
      expect((await change).code).toBe(0);
      const deletion = ctl('wait cm/late --for=delete --timeout=10s');
      await ctl('delete cm late');
      expect((await deletion).code).toBe(0);
      await ctl('create -f -', map('never'));
      expect((await ctl('wait cm/never --for=jsonpath={.data.z} --timeout=50ms')).err).toBe(
        'error: timed out waiting for the condition on configmaps/never\n',
      );
    });

    test('CLIENT-1: roles and bindings are created from flags', async () => {
      expect((await ctl('create role r --verb=get,list --resource=pods')).code).toBe(0);
      const bound = await ctl('create rolebinding b --role=r --user=jane --group=dev');
      expect(bound.out).toBe(`rolebinding.${dialect.group('rbac.authorization')}/b created\n`);
      const { body } = await on.server.get(
        `/apis/${dialect.group('rbac.authorization')}/v1/namespaces/${on.namespace}/rolebindings/b`,
      );
      expect(body.subjects.map((subject: { name: string }) => subject.name)).toEqual([
        'jane',
        'dev',
      ]);
      expect((await ctl('create namespace made-by-hand')).out).toBe(
        'namespace/made-by-hand created\n',
      );
    });
  });

  describe('the current user', () => {
    test('CLIENT-1: auth can-i and whoami describe the user', async () => {
      const { body: made } = await on.server.get('/apis');
      expect(made.kind).toBe('APIGroupList');
      expect(await ctl('auth can-i create pods')).toEqual({ code: 0, out: 'yes\n', err: '' });
      const who = (await ctl('auth whoami')).out;
      expect(who).toMatch(/Username +system:admin\n/);
      expect(who).toMatch(/Groups +\[system:masters system:authenticated\]/);
      const anonymous = await on.home.run([
        ...`auth whoami --server=${on.server.url} --insecure-skip-tls-verify=true`.split(' '),
        '--kubeconfig=/dev/null',
      ]);
      expect(anonymous.code).toBe(1);
      expect(anonymous.err).toContain('Forbidden');
      const list = (await ctl('auth can-i --list')).out;
      expect(list).toMatch(/^Resources +Non-Resource URLs +Resource Names +Verbs\n/);
      expect(list).toContain('[*]');
    });

    test('CLIENT-1: config lists and switches contexts', async () => {
      expect((await on.home.run('config current-context')).out).toBe('admin\n');
      expect((await on.home.run('config get-contexts -o name')).out).toBe('admin\n');
      await on.home.run(
        `config set-context team --cluster=admin --user=admin --namespace=${on.namespace}`,
      );
      await ctl('create -f -', map('there'));
      expect((await on.home.run('get cm -o name --context team')).out).toBe('configmap/there\n');
      expect((await on.home.run('config use-context team')).out).toBe(
        'Switched to context "team".\n',
      );
      expect((await on.home.run('get cm -o name')).out).toBe('configmap/there\n');
      expect((await on.home.run('config view')).out).not.toContain('test-admin-token');
      await on.home.run('config use-context admin');
      const kept = readFileSync(join(on.home.folder, 'config'), 'utf8');
      expect(kept).toContain('test-admin-token');
      const wrong = await on.home.run('get cm --token=wrong');
      expect(wrong.code).toBe(1);
      expect(wrong.err).toContain('You must be logged in to the server');
    });
  });

  test('CLIENT-1: wait succeeds for deleted objects, and an invalid patch is reported', async () => {
    const gone = await ctl('wait cm/nope --for=delete --timeout=1s');
    expect(gone).toEqual({ code: 0, out: '', err: '' });
    await ctl('create -f -', map('x', {}));
    const patch = '[{"op":"remove","path":"/data/nope"}]';
    const { code, err } = await ctl(['patch', 'cm', 'x', '--type=json', '-p', patch]);
    expect(code).toBe(1);
    expect(err).toBe(
      'The request is invalid: the server rejected our request due to an error in our request\n',
    );
  });
});
