import type { SelfSubjectRulesReview } from '@wheelhouse/kinds/types/authorization/v1';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  as,
  bindingOf,
  mustCreate,
  rbacGroup,
  rbacPath,
  roleOf,
} from '../authentication/token-users.ts';
import { cpuMsOf } from '../support/cpu-time.ts';
import { configMap, eventually, freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';

let namespace: string;
let roles: string;
let maps: string;

const server = await withUsers([{ name: 'writer' }]);
beforeAll(async () => {
  namespace = await freshNamespace(server);
  roles = `${rbacPath}/namespaces/${namespace}/roles`;
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
  const verbs = ['get', 'list', 'create', 'update', 'delete'];
  const rules = [
    { verbs, apiGroups: [rbacGroup], resources: ['roles', 'rolebindings'] },
    { verbs: ['get'], apiGroups: [''], resources: ['r0', 'r1'] },
  ];
  await mustCreate(server, `${rbacPath}/clusterroles`, roleOf('ClusterRole', 'writes', { rules }));
  const binding = bindingOf('ClusterRoleBinding', 'writes', {
    role: 'writes',
    subjects: ['writer'],
  });
  await mustCreate(server, `${rbacPath}/clusterrolebindings`, binding);
  await eventually(async () => (await server.get(roles, as('writer'))).status === 200);
});

const names = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

describe('privilege escalation', () => {
  const wide = (count: number) => ({
    verbs: names('v', count),
    apiGroups: names('g', 10),
    resources: names('r', count),
  });

  test('TRUST-2, TRUST-3: a role of 14 million permissions is refused at once', async () => {
    for (const count of [400, 1200]) {
      const role = roleOf('Role', 'wide', { rules: [wide(count)] });
      const spentMs = await cpuMsOf(async () => {
        const { status, body, text } = await server.post(roles, role, as('writer'));
        expect(status).toBe(403);
        expect(body.message).toMatch(/\nand \d+ more$/);
        // JSON escapes the quotes of the 64 KiB.
        expect(text.length).toBeLessThan(140_000);
      });
      // Decomposing the rule took 3.5 s for 400 and ended the process for 1200.
      expect(spentMs).toBeLessThan(1500);
    }
    expect((await server.get(`${roles}/wide`)).status).toBe(404);
  });

  test('TRUST-2: rules held through too many combinations are 422', async () => {
    const rules = names('r', 2200).map((resource, index) => ({
      verbs: [`v${index}`],
      apiGroups: [''],
      resources: [resource],
    }));
    await mustCreate(server, roles, roleOf('Role', 'many', { rules }));
    const bindings = `${rbacPath}/namespaces/${namespace}/rolebindings`;
    const binding = bindingOf('RoleBinding', 'many', {
      role: 'many',
      roleKind: 'Role',
      subjects: ['writer'],
    });
    await mustCreate(server, bindings, binding);
    const role = roleOf('Role', 'product', {
      rules: [{ verbs: names('v', 2200), apiGroups: [''], resources: names('r', 2200) }],
    });
    const { status, body } = await server.post(roles, role, as('writer'));
    expect([status, body.reason, body.message]).toEqual([
      422,
      'Invalid',
      'the check for privilege escalation needs more work than one request may cost',
    ]);
    expect((await server.get(`${roles}/product`)).status).toBe(404);
    await server.remove(`${bindings}/many`);
  });
});

test('TRUST-3: a rules review lists a bounded number of values and counts the rest', async () => {
  const bindings = `${rbacPath}/namespaces/${namespace}/rolebindings`;
  for (const name of ['first', 'second', 'third']) {
    const resources = names(`${name}-`, 40_000);
    const rules = [{ verbs: ['get'], apiGroups: [''], resources }];
    await mustCreate(server, roles, roleOf('Role', name, { rules }));
    // A role counts once, regardless of the number of its bindings.
    for (const again of ['a', 'b']) {
      const bound = { role: name, roleKind: 'Role' as const, subjects: ['writer'] };
      await mustCreate(server, bindings, bindingOf('RoleBinding', `${name}-${again}`, bound));
    }
  }
  const group = 'authorization.svc.io';
  const review = {
    apiVersion: `${group}/v1`,
    kind: 'SelfSubjectRulesReview',
    spec: { namespace },
  };
  const path = `/apis/${group}/v1/selfsubjectrulesreviews`;
  const { status } = await eventually(async () => {
    const answer = await server.post<ResponseOf<SelfSubjectRulesReview>>(
      path,
      review,
      as('writer'),
    );
    return answer.body.status.incomplete ? answer.body : undefined;
  });
  expect(status.evaluationError).toBe('1 more rules are not listed');
  const listed = status.resourceRules.flatMap((rule) => rule.resources);
  expect(listed.length).toBeGreaterThan(80_000);
  expect(listed.length).toBeLessThan(100_000);
});

describe('patches', () => {
  const patched = async (name: string, operations: readonly object[], data: object = {}) => {
    const made = await server.post(maps, { ...configMap(name), data });
    expect(made.status, made.text).toBe(201);
    return server.patch(`${maps}/${name}`, operations, 'json');
  };

  test('TRUST-2: moves cost the same regardless of their size', async () => {
    const data = Object.fromEntries(names('key', 4000).map((key) => [key, 'x'.repeat(20)]));
    const there = { op: 'move', from: '/data', path: '/binaryData' };
    const back = { op: 'move', from: '/binaryData', path: '/data' };
    const operations = Array.from({ length: 10_000 }, (_, index) => (index % 2 ? back : there));
    const spentMs = await cpuMsOf(async () => {
      const { status, body } = await patched('moved', operations, data);
      expect([status, body.data]).toEqual([200, data]);
    });
    // Cloning the moved values took about 8 s.
    expect(spentMs).toBeLessThan(3000);
  });

  test('TRUST-2: copies that add up to more than 3 MiB are 422 and change nothing', async () => {
    const copies = (count: number) =>
      Array.from({ length: count }, (_, index) => ({
        op: 'copy',
        from: '/data',
        path: `/metadata/c${index}`,
      }));
    const data = { a: 'x'.repeat(100_000) };
    const { status } = await patched('copied', copies(32), data);
    expect(status).toBe(422);
    const few = await server.patch(`${maps}/copied`, copies(20), 'json');
    expect(few.status).toBe(200);
    expect((await server.get(`${maps}/copied`)).body.data).toEqual(data);
  });

  test('TRUST-2: a patch shifts list items only a bounded number of times', async () => {
    const finalizers = Array.from({ length: 30_000 }, () => '');
    const operations: object[] = [{ op: 'add', path: '/metadata/finalizers', value: finalizers }];
    for (let count = 0; count < 6_000; count += 1) {
      operations.push({ op: 'add', path: '/metadata/finalizers/0', value: '' });
    }
    const { status, body } = await patched('long', operations);
    expect([status, body.message]).toEqual([
      422,
      'the JSON patch needs more work than one request may cost',
    ]);
  });

  test('TRUST-2: other requests are served while a long patch runs', async () => {
    const operations: object[] = [
      { op: 'add', path: '/metadata/x', value: Array.from({ length: 10_000 }, () => '') },
    ];
    for (let count = 0; count < 7_000; count += 1) {
      operations.push({ op: 'add', path: '/metadata/x/0', value: '' });
    }
    operations.push({ op: 'remove', path: '/metadata/x' });
    await server.post(maps, { ...configMap('sliced'), data: {} });
    let over = false;
    let turns = 0;
    const turn = () => {
      if (over) return;
      turns += 1;
      setImmediate(turn);
    };
    turn();
    const patching = server.patch(`${maps}/sliced`, operations, 'json');
    expect((await patching).status).toBe(200);
    over = true;
    expect(turns).toBeGreaterThan(5);
  });
});

describe('patterns', () => {
  const definitions = '/apis/apiextensions.svc.io/v1/customresourcedefinitions';
  const definition = (plural: string, text: object) => ({
    metadata: { name: `${plural}.patterns.io` },
    spec: {
      group: 'patterns.io',
      scope: 'Namespaced',
      names: { plural, singular: plural, kind: plural, listKind: `${plural}List` },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: { type: 'object', properties: { text: { type: 'string', ...text } } },
          },
        },
      ],
    },
  });
  const create = (plural: string, text: string) =>
    server.post(`/apis/patterns.io/v1/namespaces/${namespace}/${plural}`, {
      apiVersion: 'patterns.io/v1',
      kind: plural,
      metadata: { name: 'a' },
      text,
    });

  test('TRUST-2: a short pattern that compiles to millions of instructions is 422', async () => {
    const pattern = `(?:${'a?'.repeat(2000)}){1000}`;
    const { status, text } = await server.post(definitions, definition('huges', { pattern }));
    expect([status, text]).toEqual([422, expect.stringContaining('at most 10000 instructions')]);
  });

  test('TRUST-2: the product of pattern and text is bounded', async () => {
    const wide = definition('wides', { pattern: '^(?:a|b)*a(?:a|b){900}$' });
    expect((await server.post(definitions, wide)).status).toBe(201);
    expect((await create('wides', `${'ab'.repeat(1000)}a`)).status).toBe(201);
    const { status, body } = await create('wides', 'ab'.repeat(50_000));
    expect([status, body.message]).toEqual([
      422,
      'the validation of the object needs more work than one request may cost',
    ]);
  });

  test('TRUST-2: a text of 1 MiB matches a simple pattern, and one of 3 MB is 422', async () => {
    const texts = definition('texts', { pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' });
    expect((await server.post(definitions, texts)).status).toBe(201);
    const path = `/apis/patterns.io/v1/namespaces/${namespace}/texts`;
    const made = await create('texts', 'a'.repeat(1 << 20));
    expect(made.status, made.text.slice(0, 1000)).toBe(201);
    const wrong = await server.patch(`${path}/a`, { text: `${'a'.repeat(1 << 20)}-` }, 'merge');
    expect(wrong.status).toBe(422);
    const long = await server.patch(`${path}/a`, { text: 'a'.repeat(3_000_000) }, 'merge');
    expect([long.status, long.body.message]).toEqual([
      422,
      'the validation of the object needs more work than one request may cost',
    ]);
    const { body } = await server.get(`${path}/a`);
    expect(body).toEqual(made.body);
  });

  test('TRUST-2: a rule does not search a text of more than 200,000 characters', async () => {
    const rule = "self.replace('b', 'c') == self && self.matches('^a+$')";
    const rules = {
      maxLength: 1_000_000,
      'x-kubernetes-validations': [{ rule, message: 'has a b' }],
    };
    const made = await server.post(definitions, definition('searches', rules));
    expect(made.status, made.text).toBe(201);
    const path = `/apis/patterns.io/v1/namespaces/${namespace}/searches`;
    const first = await create('searches', 'a'.repeat(200_000));
    expect(first.status, first.text.slice(0, 1000)).toBe(201);
    const { status, body } = await server.patch(
      `${path}/a`,
      { text: 'a'.repeat(200_001) },
      'merge',
    );
    expect([status, body.reason]).toEqual([422, 'Invalid']);
    expect(body.message).toContain('a text has more than 200000 characters');
    expect((await server.get(`${path}/a`)).body).toEqual(first.body);
  });

  test('TRUST-2: a rule cannot compare or format one list any number of times', async () => {
    let same = 'v8 == v8';
    for (let level = 8; level > 0; level -= 1) {
      const item = level === 1 ? 'self' : `v${level - 1}`;
      same = `[[${Array(10).fill(item).join()}]].all(v${level}, ${same})`;
    }
    const rules = {
      maxLength: 10,
      'x-kubernetes-validations': [{ rule: same, message: 'differs' }],
    };
    const made = await server.post(definitions, definition('nests', rules));
    expect(made.status, made.text).toBe(201);
    const { status, body } = await create('nests', 'a');
    expect([status, body.message]).toEqual([
      422,
      expect.stringContaining('a comparison takes over 200000 values'),
    ]);
  });

  test('TRUST-2: expressions are bounded by what a pattern compiles to', async () => {
    const rule = "[1, 2, 3, 4, 5, 6].exists(i, self.matches('^(?:(?:a|b)?){1000}$'))";
    const validations = [{ rule, message: 'no match' }];
    const rules = { maxLength: 200_000, 'x-kubernetes-validations': validations };
    const made = await server.post(definitions, definition('ruleds', rules));
    expect(made.status, made.text).toBe(201);
    expect((await create('ruleds', 'ab'.repeat(100))).status).toBe(201);
    const { status, text } = await create('ruleds', 'ab'.repeat(50_000));
    expect([status, text.slice(0, 1000)]).toEqual([422, expect.stringContaining('cost')]);
  });
});
