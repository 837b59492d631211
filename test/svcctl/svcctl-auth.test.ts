import type { ClusterRole } from '@wheelhouse/kinds/types/rbac/v1';
import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { startWithUsers } from '../authentication/token-users.ts';
import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { svcctlOn } from './svcctl-run.ts';

describe.each(dialectNames)('CLIENT-1: svcctl and authorization, dialect %s', (dialectName) => {
  const dialect = dialectOf(dialectName);
  const rbac = dialect.group('rbac.authorization');
  const on = svcctlOn(() =>
    startWithUsers([{ name: 'jane' }, { name: 'joe' }], { dialect: dialectName }),
  );
  const { ctl } = on;
  const errorOf = async (line: string): Promise<string> => {
    const { code, out, err } = await ctl(line);
    expect({ line, code, out }).toEqual({ line, code: 1, out: '' });
    return err;
  };
  /** The object that a generator prints. */
  const printed = async (line: string) => {
    const { code, out, err } = await ctl(`create ${line} --dry-run=client -o json`);
    expect({ line, code, err }).toEqual({ line, code: 0, err: '' });
    return JSON.parse(out);
  };

  describe('queries', () => {
    test('CLIENT-1: auth can-i answers with text and exit code', async () => {
      await ctl('create role reader --verb=get --resource=pods --resource-name=one');
      await ctl('create rolebinding reader --role=reader --user=jane');
      const asJane = (line: string) => ctl(`auth can-i ${line} --as=jane`);
      expect(await asJane('get pods/one')).toEqual({ code: 0, out: 'yes\n', err: '' });
      expect(await asJane('get pods/two')).toEqual({ code: 1, out: 'no\n', err: '' });
      expect(await asJane('get po/one -q')).toEqual({ code: 0, out: '', err: '' });
      expect(await asJane('get pods -q')).toEqual({ code: 1, out: '', err: '' });
      expect((await asJane('get pods/one -A')).code).toBe(1);
      expect((await asJane('get pods/one --subresource=log')).code).toBe(1);
      expect((await ctl('auth can-i get pods/one --token=jane')).code).toBe(0);
      expect((await ctl('auth can-i get pods/one --token=joe')).code).toBe(1);
      expect((await asJane('get /version')).out).toBe('yes\n');
      expect((await asJane('get /metrics')).out).toBe('no\n');
      expect((await ctl('auth can-i * *')).out).toBe('yes\n');
      expect((await asJane('* *')).code).toBe(1);
    });

    test('CLIENT-1: auth can-i warns of unknown names and rejects invalid arguments', async () => {
      const warning = async (line: string) => {
        const { code, err } = await ctl(`auth can-i ${line}`);
        expect(code).toBe(0);
        return err;
      };
      expect(await warning('get nope')).toBe(
        "Warning: the server doesn't have a resource type 'nope'\n\n",
      );
      expect(await warning('get nope.foo.io')).toBe(
        "Warning: the server doesn't have a resource type 'nope' in group 'foo.io'\n\n",
      );
      expect(await warning('get nodes')).toBe(
        "Warning: resource 'nodes' is not namespace scoped\n\n",
      );
      expect(await warning('get clusterroles')).toBe(
        `Warning: resource 'clusterroles' is not namespace scoped in group '${rbac}'\n\n`,
      );
      expect(await warning('frob pods')).toBe("Warning: verb 'frob' is not a known verb\n\n");
      const two =
        'you must specify two arguments: verb resource or verb resource/resourceName.\n' +
        "See 'svcctl auth can-i -h' for help and examples.";
      for (const line of ['', ' get', ' get pods foo']) {
        expect(await errorOf(`auth can-i${line}`)).toBe(`error: ${two}\n`);
      }
      expect(await errorOf('auth can-i --list -q')).toBe(
        "error: list option can't be specified with neither quiet, all-namespaces nor subresource options\n",
      );
      expect(await errorOf('auth can-i --list get pods')).toBe(
        'error: list option must be specified with no arguments\n',
      );
      expect(await errorOf('auth can-i get pods --no-headers')).toBe(
        'error: --no-headers cannot be set without --list specified\n',
      );
      expect(await errorOf('auth can-i get --subresource=log /foo')).toBe(
        'error: --subresource can not be used with NonResourceURL\n',
      );
    });

    test('CLIENT-1: auth can-i --list merges the verbs of a resource', async () => {
      await ctl('create role a --verb=get,list --resource=pods,deployments.apps');
      await ctl('create role b --verb=watch --resource=pods --resource-name=x');
      await ctl('create role c --verb=create,get --resource=pods');
      for (const name of ['a', 'b', 'c']) {
        await ctl(`create rolebinding ${name} --role=${name} --user=jane`);
      }
      const { code, out } = await ctl('auth can-i --list --as=jane');
      expect(code).toBe(0);
      const rows = out.split('\n').map((row) => row.split(/ {2,}/));
      expect(rows[0]).toEqual(['Resources', 'Non-Resource URLs', 'Resource Names', 'Verbs']);
      expect(rows).toContainEqual(['pods', '[]', '[]', '[get list create]']);
      expect(rows).toContainEqual(['pods', '[]', '[x]', '[watch]']);
      expect(rows).toContainEqual(['deployments.apps', '[]', '[]', '[get list]']);
      expect(rows).toContainEqual(['', '[/version]', '[]', '[get]']);
      const reviews = `selfsubjectreviews.${dialect.group('authentication')}`;
      expect(rows).toContainEqual([reviews, '[]', '[]', '[create]']);
      const bare = (await ctl('auth can-i --list --no-headers --as=jane')).out;
      expect(bare).not.toContain('Resource Names');
    });

    test('CLIENT-1: auth whoami shows the user, also when impersonating', async () => {
      const who = await ctl('auth whoami --as=jane --as-group=a --as-group=b --as-uid=1');
      expect(who.out).toBe(
        'ATTRIBUTE   VALUE\nUsername    jane\nUID         1\n' +
          'Groups      [a b system:authenticated]\n',
      );
      const review = JSON.parse((await ctl('auth whoami -o json --token=joe')).out);
      expect(review).toMatchObject({
        kind: 'SelfSubjectReview',
        status: { userInfo: { username: 'joe' } },
      });
      expect((await ctl('auth whoami --as-group=a')).err).toBe(
        'error: requesting uid, groups or user-extra for admin without impersonating a user\n',
      );
    });
  });

  describe('creation', () => {
    test('CLIENT-1: create role', async () => {
      expect(await errorOf('create role')).toBe(
        'error: exactly one NAME is required, got 0\n' +
          "See 'svcctl create role -h' for help and examples\n",
      );
      expect(await errorOf('create role r')).toBe('error: at least one verb must be specified\n');
      expect(await errorOf('create role r --verb=get')).toBe(
        'error: at least one resource must be specified\n',
      );
      expect(await errorOf('create role r --verb=get --resource=nope')).toBe(
        'the server doesn\'t have a resource type "nope"\n',
      );
      expect(await errorOf('create role r --verb=get --resource=/x')).toBe(
        'error: resource must be specified if apiGroup/subresource specified\n',
      );
      for (const verb of ['use', 'bind', 'escalate', 'impersonate']) {
        expect(await errorOf(`create role r --verb=${verb} --resource=pods`)).toBe(
          `error: can not perform '${verb}' on 'pods' in group ''\n`,
        );
      }
      const role = await printed(
        'role r --verb=get,list,get --verb=watch --resource=pods,pods/log,deployments.apps/scale ' +
          '--resource=rs.apps --resource-name=a --resource-name=b,c',
      );
      expect(role).toEqual({
        apiVersion: `${rbac}/v1`,
        kind: 'Role',
        metadata: { name: 'r', namespace: on.namespace },
        rules: [
          {
            apiGroups: [''],
            resourceNames: ['a', 'b,c'],
            resources: ['pods', 'pods/log'],
            verbs: ['get', 'list', 'watch'],
          },
          {
            apiGroups: ['apps'],
            resourceNames: ['a', 'b,c'],
            resources: ['deployments/scale', 'replicasets'],
            verbs: ['get', 'list', 'watch'],
          },
        ],
      });
      expect((await printed('role r --verb=* --verb=get --resource=*.apps')).rules).toEqual([
        { apiGroups: ['apps'], resources: ['*'], verbs: ['*'] },
      ]);
      expect((await printed('role r --verb=bind --resource=roles')).rules[0].apiGroups).toEqual([
        rbac,
      ]);
      expect((await printed('role r --verb=impersonate --resource=users')).rules).toEqual([
        { apiGroups: [''], resources: ['users'], verbs: ['impersonate'] },
      ]);
      const odd = await ctl('create role r --verb=frob --resource=pods --dry-run=server');
      expect(odd.err).toBe("Warning: 'frob' is not a standard resource verb\n");
      expect(odd.out).toBe(`role.${rbac}/r created (server dry run)\n`);
      expect((await ctl('create role r --verb=get --resource=pods')).out).toBe(
        `role.${rbac}/r created\n`,
      );
      expect(await errorOf('create role r --verb=get --resource=pods')).toBe(
        `Error from server (AlreadyExists): roles.${rbac} "r" already exists\n`,
      );
    });

    test('CLIENT-1: create clusterrole', async () => {
      const name = `c-${on.namespace}`;
      const create = `create clusterrole ${name}`;
      expect(await errorOf(`${create} --verb=get`)).toBe(
        'error: one of resource or nonResourceURL must be specified\n',
      );
      expect(await errorOf(`${create} --verb=get --non-resource-url=x`)).toBe(
        'error: nonResourceURL should start with /\n',
      );
      expect(await errorOf(`${create} --verb=list --non-resource-url=/x`)).toBe(
        "error: invalid verb: 'list' for nonResourceURL\n",
      );
      expect(await errorOf(`${create} --verb=get --non-resource-url=/x*y`)).toBe(
        "error: nonResourceURL only supports wildcard matches when '*' is at the end\n",
      );
      expect(
        (
          await printed(
            `clusterrole ${name} --verb=get --non-resource-url=/x/*,/y --resource=nodes`,
          )
        ).rules,
      ).toEqual([
        { apiGroups: [''], resources: ['nodes'], verbs: ['get'] },
        { nonResourceURLs: ['/x/*', '/y'], verbs: ['get'] },
      ]);
      const mixed = 'must be specified without nonResourceURLs, verbs, resources or resourceNames';
      expect(await errorOf(`${create} --aggregation-rule=a=b --verb=get`)).toBe(
        `error: aggregation rule ${mixed}\n`,
      );
      expect(await errorOf(`${create} --aggregation-rule=b=c,a`)).toBe(
        'Error: invalid argument "b=c,a" for "--aggregation-rule" flag: malformed pair, expect string=string\n' +
          "See 'svcctl create clusterrole --help' for usage.\n",
      );
      expect((await ctl(`${create} --aggregation-rule=,a=b,c=d`)).code).toBe(0);
      const { body } = await on.server.get(`/apis/${rbac}/v1/clusterroles/${name}`);
      expect(body.aggregationRule).toEqual({
        clusterRoleSelectors: [{ matchLabels: { a: 'b', c: 'd' } }],
      });
    });

    test('CLIENT-1: create rolebinding and clusterrolebinding', async () => {
      const exactlyOne = 'error: exactly one of clusterrole or role must be specified\n';
      expect(await errorOf('create rolebinding b')).toBe(exactlyOne);
      expect(await errorOf('create rolebinding b --role=r --clusterrole=c')).toBe(exactlyOne);
      for (const account of ['a', 'a:b:c', ':b', 'a:']) {
        expect(await errorOf(`create rolebinding b --role=r --serviceaccount=${account}`)).toBe(
          'error: serviceaccount must be <namespace>:<name>\n',
        );
      }
      const binding = await printed(
        'rolebinding b --clusterrole=c --user=u,v --group=g --serviceaccount=a:b --serviceaccount=c:d',
      );
      expect(binding.roleRef).toEqual({ apiGroup: rbac, kind: 'ClusterRole', name: 'c' });
      expect(binding.subjects).toEqual([
        { apiGroup: rbac, kind: 'User', name: 'u,v' },
        { apiGroup: rbac, kind: 'Group', name: 'g' },
        { kind: 'ServiceAccount', name: 'b', namespace: 'a' },
        { kind: 'ServiceAccount', name: 'd', namespace: 'c' },
      ]);
      expect((await ctl('create rolebinding b --role=r')).code).toBe(0);
      expect(await errorOf('create rolebinding b --role=r')).toBe(
        `error: failed to create rolebinding: rolebindings.${rbac} "b" already exists\n`,
      );
      expect(await errorOf('create clusterrolebinding b')).toBe(
        'error: required flag(s) "clusterrole" not set\n',
      );
      const name = `b-${on.namespace}`;
      const created = await ctl(`create clusterrolebinding ${name} --clusterrole=view --group=dev`);
      expect(created.out).toBe(`clusterrolebinding.${rbac}/${name} created\n`);
    });

    test('CLIENT-1: create serviceaccount and token', async () => {
      expect((await ctl('create sa x')).out).toBe('serviceaccount/x created\n');
      expect(await errorOf('create sa x')).toBe(
        'error: failed to create serviceaccount: serviceaccounts "x" already exists\n',
      );
      const { out } = await ctl('create token x');
      expect(out).toMatch(/^ey[\w-]+\.[\w-]+\.[\w-]+$/);
      const who = await ctl(`auth whoami -o jsonpath={.status.userInfo.username} --token=${out}`);
      expect(who.out).toBe(`system:serviceaccount:${on.namespace}:x`);
      const review = JSON.parse(
        (await ctl('create token x --duration=1h30m --audience=a --audience=b -o json')).out,
      );
      expect(review).toMatchObject({
        kind: 'TokenRequest',
        spec: { audiences: ['a', 'b'], expirationSeconds: 5400 },
      });
      await ctl('create secret generic s');
      const bound = await ctl(
        'create token x --bound-object-kind=Secret --bound-object-name=s -o jsonpath={.spec.boundObjectRef.name}',
      );
      expect(bound.out).toBe('s');
      const wrong = (flags: string) => errorOf(`create token x ${flags}`);
      expect(await wrong('--duration=-1h')).toBe(
        'error: --duration must be greater than or equal to 0\n',
      );
      expect(await wrong('--duration=1ms')).toBe(
        'error: --duration cannot be expressed in units less than seconds\n',
      );
      expect(await wrong('--duration=1m')).toContain(
        'error: failed to create token: TokenRequest.',
      );
      expect(await wrong('--audience=')).toBe('error: --audience must not be an empty string\n');
      expect(await wrong('--bound-object-kind=Pod')).toBe(
        'error: --bound-object-name is required if --bound-object-kind is provided\n',
      );
      expect(await wrong('--bound-object-name=x')).toBe(
        'error: --bound-object-name can only be set if --bound-object-kind is provided\n',
      );
      expect(await wrong('--bound-object-uid=x')).toBe(
        'error: --bound-object-uid can only be set if --bound-object-kind is provided\n',
      );
      expect(await wrong('--bound-object-kind=Foo --bound-object-name=x')).toBe(
        'error: supported --bound-object-kind values are Node, Pod, Secret\n',
      );
      expect(await wrong('--bound-object-kind=Pod --bound-object-name=x')).toBe(
        'error: failed to create token: pods "x" not found\n',
      );
      expect(await errorOf('create token nope')).toBe(
        'error: failed to create token: serviceaccounts "nope" not found\n',
      );
    });
  });

  describe('auth reconcile', () => {
    const role = (rules: object[], more: object = {}) => ({
      apiVersion: `${rbac}/v1`,
      kind: 'Role',
      metadata: { name: 'r', ...more },
      rules,
    });
    const binding = (users: string[], roleName = 'r') => ({
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: { name: 'b' },
      roleRef: { apiGroup: rbac, kind: 'Role', name: roleName },
      subjects: users.map((name) => ({ apiGroup: rbac, kind: 'User', name })),
    });
    const rule = (resources: string[], verbs: string[]) => ({ apiGroups: [''], resources, verbs });
    const run = (objects: object[], flags = '') =>
      ctl(
        `auth reconcile -f -${flags}`,
        objects.map((object) => JSON.stringify(object)).join('\n---\n'),
      );
    const stored = async (path: string) =>
      (await on.server.get(`/apis/${rbac}/v1/namespaces/${on.namespace}/${path}`)).body;

    test('CLIENT-1: auth reconcile creates what is missing, including the namespace', async () => {
      const newNamespace = `${on.namespace}-new`;
      const desired = role([rule(['pods'], ['get'])], { namespace: newNamespace });
      const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'ignored' } };
      const text = [desired, config].map((object) => JSON.stringify(object)).join('\n---\n');
      const dry = await on.home.run('auth reconcile -f - --dry-run=client', text);
      const stderr =
        '\treconciliation required create\n\tmissing rules added:\n' +
        '\t\t{Verbs:[get] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}\n';
      expect(dry).toEqual({ code: 0, out: `role.${rbac}/r reconciled (dry run)\n`, err: stderr });
      expect((await on.server.get(`/api/v1/namespaces/${newNamespace}`)).status).toBe(404);
      const done = await on.home.run('auth reconcile -f -', text);
      expect(done).toEqual({ code: 0, out: `role.${rbac}/r reconciled\n`, err: stderr });
      expect((await on.server.get(`/api/v1/namespaces/${newNamespace}`)).status).toBe(200);
      const again = await on.home.run('auth reconcile -f -', text);
      expect(again).toEqual({ code: 0, out: `role.${rbac}/r reconciled\n`, err: '' });
    });

    test('CLIENT-1: auth reconcile adds or removes rules by what they grant', async () => {
      const metadata = { labels: { a: 'old', kept: '1' } };
      await run([role([rule(['pods'], ['get', 'list']), rule(['secrets'], ['get'])], metadata)]);
      const desired = role([rule(['pods', 'services'], ['get'])], { labels: { a: 'new', b: '1' } });
      const added = await run([desired]);
      expect(added.err).toBe(
        '\treconciliation required update\n\tmissing rules added:\n' +
          '\t\t{Verbs:[get] APIGroups:[] Resources:[services] ResourceNames:[] NonResourceURLs:[]}\n',
      );
      const union = await stored('roles/r');
      expect(union.rules).toEqual([
        rule(['pods'], ['get', 'list']),
        rule(['secrets'], ['get']),
        rule(['services'], ['get']),
      ]);
      expect(union.metadata.labels).toEqual({ a: 'old', kept: '1', b: '1' });
      const removed = await run([desired], ' --remove-extra-permissions');
      expect(removed.err).toContain(
        '\textra rules removed:\n' +
          '\t\t{Verbs:[list] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}\n' +
          '\t\t{Verbs:[get] APIGroups:[] Resources:[secrets] ResourceNames:[] NonResourceURLs:[]}\n',
      );
      expect((await stored('roles/r')).rules).toEqual(desired.rules);
    });

    test('CLIENT-1: auth reconcile changes subjects and recreates bindings', async () => {
      await run([binding(['jane', 'joe'])]);
      const result = await run([binding(['jane', 'anna'])]);
      expect(result.err).toBe(
        '\treconciliation required update\n\tmissing subjects added:\n' +
          `\t\t{Kind:User APIGroup:${rbac} Name:anna Namespace:}\n`,
      );
      const names = async () =>
        (await stored('rolebindings/b')).subjects.map((subject: { name: string }) => subject.name);
      expect(await names()).toEqual(['jane', 'joe', 'anna']);
      const removed = await run([binding(['anna'])], ' --remove-extra-subjects');
      expect(removed.err).toContain('\textra subjects removed:\n');
      expect(await names()).toEqual(['anna']);
      const before = (await stored('rolebindings/b')).metadata.uid;
      const recreated = await run([binding(['anna'], 'other')]);
      expect(recreated.err).toBe('\treconciliation required recreate\n');
      const after = await stored('rolebindings/b');
      expect(after.roleRef.name).toBe('other');
      expect(after.metadata.uid).not.toBe(before);
    });

    test('CLIENT-1: auth reconcile skips objects that opt out and refuses other kinds', async () => {
      const optOut = dialect.label('autoupdate', 'rbac.authorization');
      await run([role([rule(['pods'], ['get'])], { annotations: { [optOut]: 'false' } })]);
      const result = await run([role([rule(['pods'], ['list'])])]);
      expect(result.err).toContain(
        `\treconciliation required update, but object opted out (${optOut}: false)\n`,
      );
      expect((await stored('roles/r')).rules).toEqual([rule(['pods'], ['get'])]);
      expect(await errorOf('auth reconcile')).toBe('error: must specify one of -f and -k\n');
      expect(await errorOf('auth reconcile -f - x')).toBe('error: no arguments are allowed\n');
      expect(await errorOf('auth reconcile -f - --dry-run=server')).toBe(
        'error: --dry-run=server for command reconcile is not supported yet\n',
      );
      const old = { ...role([]), apiVersion: `${rbac}/v1beta1` };
      expect(await run([old])).toMatchObject({
        code: 1,
        err: `error: only ${rbac}/v1 is supported: not v1beta1.Role\n`,
      });
    });

    test('CLIENT-1: auth reconcile of aggregated roles compares their selectors', async () => {
      const aggregated = (...labels: string[]) => ({
        apiVersion: `${rbac}/v1`,
        kind: 'ClusterRole',
        metadata: { name: `agg-${on.namespace}` },
        aggregationRule: {
          clusterRoleSelectors: labels.map((label) => ({ matchLabels: { [label]: 'x' } })),
        },
      });
      const selectors = async () =>
        (await on.server.get<ClusterRole>(`/apis/${rbac}/v1/clusterroles/agg-${on.namespace}`)).body
          .aggregationRule?.clusterRoleSelectors;
      await run([aggregated('a')]);
      expect((await run([aggregated('b')])).err).toBe('\treconciliation required update\n');
      expect(await selectors()).toEqual(aggregated('a', 'b').aggregationRule.clusterRoleSelectors);
      await run([aggregated('b')], ' --remove-extra-permissions');
      expect(await selectors()).toEqual(aggregated('b').aggregationRule.clusterRoleSelectors);
    });
  });
});

printsLikeKubectl('can-i', [
  ['auth can-i impersonate users'],
  ['auth can-i impersonate Groups/x --as=none'],
  ['auth can-i get users.example.com'],
]);
