// The objects that expressions read: a custom one, and a Deployment.

const text = (maxLength) => ({ type: 'string', maxLength });
const member = {
  type: 'object',
  properties: {
    name: text(9),
    count: { type: 'integer' },
    list: { type: 'array', maxItems: 3, items: { type: 'integer' } },
  },
};

/** The schema of the custom object. */
export const schema = {
  type: 'object',
  properties: {
    s: text(20),
    t: text(20),
    z: text(20),
    m: { type: 'object', maxProperties: 5, additionalProperties: text(10) },
    one: { type: 'object', maxProperties: 1, additionalProperties: text(10) },
    o: { type: 'object', properties: { x: text(5), y: { type: 'integer' }, deep: member } },
    i: { type: 'integer', maximum: 100 },
    n: { type: 'integer', format: 'int32' },
    d: { type: 'number' },
    b: { type: 'boolean' },
    l: { type: 'array', maxItems: 5, items: { type: 'integer' } },
    ls: { type: 'array', maxItems: 5, items: text(9) },
    set: { type: 'array', maxItems: 5, items: text(9), 'x-kubernetes-list-type': 'set' },
    p: {
      type: 'object',
      'x-kubernetes-preserve-unknown-fields': true,
      properties: { a: text(5) },
    },
    ios: { 'x-kubernetes-int-or-string': true, maxLength: 9 },
    objs: { type: 'array', maxItems: 3, items: member },
    keyed: {
      type: 'array',
      maxItems: 3,
      items: { ...member, required: ['name'] },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    },
    om: { type: 'object', maxProperties: 1, additionalProperties: member },
    emb: {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      properties: { spec: { type: 'object', properties: { a: text(5) } } },
    },
    none: { ...text(5), nullable: true },
    'dash-y': text(5),
    'dot.ted': { type: 'integer' },
    'a/b': text(5),
    under__score: text(5),
    in: text(5),
    namespace: text(5),
    date: { type: 'string', format: 'date' },
    time: { type: 'string', format: 'date-time' },
    took: { type: 'string', format: 'duration' },
    raw: { type: 'string', format: 'byte', maxLength: 12 },
    level: { type: 'string', enum: ['low', 'high'] },
  },
};

/** An object of the schema. */
export const value = {
  s: 'hello',
  t: 'wörld',
  m: { k: 'v', b: 'w' },
  one: { k: 'v' },
  o: { x: 'xx', y: 5, deep: { name: 'd', list: [7] } },
  i: 42,
  n: -3,
  d: 2.5,
  b: true,
  l: [1, 2, 3],
  ls: ['a', 'b'],
  set: ['y', 'x'],
  p: { a: 'pa', q: [1, 'x'] },
  ios: '50%',
  objs: [{ name: 'a', count: 1, list: [1, 2] }, { name: 'b', count: 2, list: [] }, { count: 3 }],
  keyed: [
    { name: 'x', count: 1 },
    { name: 'y', list: [3] },
  ],
  om: { k: { name: 'k', count: 9, list: [9, 8] } },
  emb: { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'e' }, spec: { a: 'ea' } },
  none: null,
  'dash-y': 'dash',
  'dot.ted': 5,
  'a/b': 'ab',
  under__score: 'us',
  in: 'in',
  namespace: 'ns',
  date: '2024-02-29',
  time: '2024-02-29T01:02:03.004+05:30',
  took: '1h0m5s',
  raw: 'aGVsbG8=',
  level: 'low',
};

/** The same object after an update. */
export const changed = {
  ...value,
  s: 'bye',
  i: 43,
  l: [3, 2],
  m: { k: 'v2' },
  set: ['x', 'y'],
  keyed: [
    { name: 'y', list: [3] },
    { name: 'x', count: 1 },
  ],
  o: { y: 6 },
  z: 'zz',
};

/** Expressions by type that read the custom object. */
export const customFields = {
  string: [
    ...['self.s', 'self.t', 'self.m["k"]', 'self.m.k', 'self.o.x', 'self.ios', 'self.none'],
    ...['self.dash__dash__y', 'self.a__slash__b', 'self.under__underscores__score'],
    ...['self.__in__', 'self.__namespace__', 'self.emb.spec.a', 'self.emb.metadata.name'],
    ...['self.emb.kind', 'self.level', 'self.p.a', 'self.z', 'self.o.deep.name', 'self.nope'],
  ],
  int: [
    ...['self.i', 'self.n', 'self.l.size()', 'self.o.y', 'self.dot__dot__ted', 'self.ios'],
    ...['self.set.size()', 'self.o.deep.count'],
  ],
  double: ['self.d'],
  bool: [
    ...['self.b', 'has(self.s)', 'has(self.z)', 'has(self.o.x)', 'has(self.o.deep.count)'],
    ...['has(self.m.k)', 'has(self.m.zz)', 'has(self.none)', 'has(self.dash__dash__y)'],
    ...['has(self.p.q)', 'has(self.emb.metadata.name)', 'has(self.nope)', 'has(self.om.k.name)'],
    ...['self == self', 'self.keyed == self.objs', 'self.none == null'],
  ],
  bytes: ['self.raw'],
  ints: ['self.l', 'self.o.deep.list', 'self.p.q'],
  strings: ['self.ls', 'self.set', 'self.emb.metadata.finalizers'],
  map: ['self.m', 'self.one', 'self.emb.metadata.labels'],
  pair: ['self.one'],
  duration: ['self.took'],
  timestamp: ['self.date', 'self.time'],
  optional: ['self.?s', 'self.?z', 'self.m[?"k"]', 'self.m[?"q"]', 'self.?o.?x', 'self.?none'],
  dyn: ['self.p', 'self.p.a', 'self.p.q', 'self.ios', 'self.emb', 'self.none', 'self'],
  type: ['type(self.i)', 'type(self.ios)', 'type(self)', 'type(self.time)', 'type(self.p)'],
  object: ['self.o.deep', 'self.objs[0]', 'self.om["k"]', 'self.keyed[1]', 'self.om.k'],
  objects: ['self.objs', 'self.keyed'],
  named: ['self.om'],
};

/**
 * Expressions by type that read the earlier object as well.
 *
 * @param old the expression for it: `oldSelf`, or what an optional one contains
 */
export function transitionFields(old) {
  const earlier = Object.entries(customFields).map(([type, list]) => [
    type,
    [...list, ...list.map((expression) => expression.replaceAll('self', old))],
  ]);
  return Object.fromEntries(earlier);
}

/** A Deployment that policies admit. */
export const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'hello', labels: { k: 'v', b: 'w' }, annotations: { one: 'x' } },
  spec: {
    replicas: 5,
    paused: true,
    selector: { matchLabels: { a: 'b' } },
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '50%', maxUnavailable: 1 } },
    template: {
      metadata: { labels: { a: 'b' } },
      spec: {
        containers: [
          {
            name: 'c',
            image: 'wörld:1',
            args: ['a', 'b'],
            ports: [{ containerPort: 80 }, { containerPort: 81, name: 'x' }],
            resources: { limits: { cpu: '1500m' } },
          },
        ],
      },
    },
  },
};

const pod = 'object.spec.template.spec';

/** Expressions by type that read what a policy for Deployments sees. */
export const policyFields = {
  string: [
    'object.metadata.name',
    `${pod}.containers[0].image`,
    'object.metadata.labels["k"]',
    'object.spec.strategy.type',
    'object.metadata.annotations.one',
    'oldObject.metadata.name',
    'request.operation',
    'request.name',
    'request.namespace',
    'request.kind.kind',
    'request.resource.resource',
    'request.subResource',
    'request.userInfo.username',
    'request.userInfo.groups[0]',
    'namespaceObject.metadata.name',
    'namespaceObject.metadata.labels["kubernetes.io/metadata.name"]',
    'params.data["p"]',
    'params.data.q',
    'variables.text',
    `${pod}.containers[0].resources.limits["cpu"]`,
    'object.spec.nope',
    'object.apiVersion',
    `${pod}.restartPolicy`,
  ],
  int: [
    'object.spec.replicas',
    'oldObject.spec.replicas',
    'request.options.?x.orValue(0)',
    'variables.number',
    'object.metadata.generation',
    'object.spec.strategy.rollingUpdate.maxUnavailable',
    `${pod}.containers[0].ports[0].containerPort`,
    `${pod}.terminationGracePeriodSeconds`,
    'size(object)',
  ],
  bool: [
    'object.spec.paused',
    'has(object.metadata.name)',
    'has(object.spec.zz)',
    'has(oldObject.spec.paused)',
    'has(object.status)',
    'oldObject == null',
    'request.dryRun',
    'variables.flag',
    'has(request.subResource)',
    'has(params.data)',
    'object == oldObject',
    'authorizer.group("apps").resource("deployments").check("get").allowed()',
    'authorizer.requestResource.check("update").allowed()',
    'authorizer.path("/healthz").check("get").errored()',
  ],
  ints: ['variables.numbers', `${pod}.containers[0].ports.map(x, x.containerPort)`],
  strings: [`${pod}.containers[0].args`, 'request.userInfo.groups', 'variables.list'],
  map: ['object.metadata.labels', 'params.data', 'object.metadata.annotations'],
  pair: ['object.metadata.annotations', 'object.spec.selector.matchLabels'],
  optional: ['object.metadata.?name', 'object.spec.?zz', 'params.?data.?p', 'params.data[?"zz"]'],
  dyn: [
    `${pod}.containers[0].resources`,
    'object.spec.strategy.rollingUpdate.maxSurge',
    'object',
    'oldObject',
    'request',
    'variables.any',
    'request.options',
    'request.userInfo.extra',
    'object.metadata.creationTimestamp',
  ],
  timestamp: ['object.metadata.creationTimestamp', 'namespaceObject.metadata.creationTimestamp'],
  quantity: [`quantity(${pod}.containers[0].resources.limits["cpu"])`],
  object: [`${pod}.containers[0]`, 'object.metadata'],
  objects: [`${pod}.containers`, `${pod}.containers[0].ports`],
  named: ['object.metadata.labels'],
};

/** The variables of a policy. */
export const variables = [
  { name: 'text', expression: 'object.metadata.name + "-" + object.kind' },
  { name: 'number', expression: 'object.spec.replicas * 2' },
  { name: 'flag', expression: 'variables.number > 3' },
  { name: 'numbers', expression: '[variables.number, 1]' },
  { name: 'list', expression: 'object.metadata.labels.map(k, "l")' },
  { name: 'any', expression: '{"a": variables.numbers, "b": variables.numbers}' },
];
