import {
  bodyValuesMax,
  encodeCbor,
  encodeEnvelope,
  encodeYaml,
  objectMembersMax,
  yamlBodyLimits,
} from '@wheelhouse/codec';
import { builtinKinds, type ResourceDef, type VersionDef } from '@wheelhouse/kinds';
import { dialectOf, isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { type Form, forms, methods, placeOf } from './growth-forms.ts';
import { definitions } from './growth-requests.ts';
import { type Collection, collectionsOf, filled, type Variant, variants } from './growth-shapes.ts';
import { backgroundSteps } from './step-background.ts';
import {
  bodyOf,
  json,
  maps,
  namespace,
  pods,
  post,
  remove,
  repeated,
  type StepCase,
  type StepRequest,
  withVersion,
} from './step-case.ts';
import { policy, policyBinding, ruledDefinition, stepDefinition } from './step-definitions.ts';
import { extremeSteps } from './step-extremes.ts';

const dialect = dialectOf('svc');
const rbac = '/apis/rbac.authorization.svc.io/v1/namespaces/default';
const podTemplates = `${namespace}/podtemplates`;
const secrets = `${namespace}/secrets`;
const customs = '/apis/steps.io/v1/namespaces/default/steps';
const ruled = '/apis/ruled.io/v1/namespaces/default/ruleds';

/** Size of the largest body in bytes, with a margin, and the number of values that fit. */
const bodyBytes = 3_100_000;
const bodyValues = bodyValuesMax - 1000;
const yamlValues = yamlBodyLimits.valuesMax - 1000;

const keys = (count: number, value: string): JsonObject =>
  Object.fromEntries(repeated(count, (index) => [`key-${index}`, value]));

const schemaOf = (kind: string): VersionDef => {
  const def = builtinKinds(dialect).find((candidate) => candidate.kind === kind);
  const version = def?.versions.find((candidate) => candidate.version === 'v1');
  if (version === undefined) throw new Error(`no kind ${kind}`);
  return version;
};

interface Shape {
  readonly name: string;
  readonly collection: string;
  readonly kind: string;
  /** An object of the kind; `value` differs in each of its versions. */
  object(name: string, value: string): JsonObject;
}

const container = (index: number): JsonObject => ({
  name: `c${index}`,
  image: 'a',
  ports: [{ containerPort: 1 + index, protocol: 'TCP' }],
});
const pod = (name: string, value: string, spec: JsonObject): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { value } },
  spec,
});

const shapes: readonly Shape[] = [
  {
    name: 'a ConfigMap of 32,000 keys',
    collection: maps,
    kind: 'ConfigMap',
    object: (name, value) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name },
      data: keys(16_000, value),
      binaryData: Object.fromEntries(repeated(16_000, (index) => [`binary-${index}`, 'YQ=='])),
    }),
  },
  {
    name: 'a Pod of many containers',
    collection: pods,
    kind: 'Pod',
    object: (name, value) => pod(name, value, { containers: repeated(14_000, container) }),
  },
  {
    name: 'a Pod of many variables',
    collection: pods,
    kind: 'Pod',
    object: (name, value) =>
      pod(name, value, {
        containers: [
          {
            ...container(0),
            env: repeated(30_000, (index) => ({ name: `v${index}`, value: 'a' })),
          },
        ],
      }),
  },
  {
    name: 'a PodTemplate of many variables',
    collection: podTemplates,
    kind: 'PodTemplate',
    object: (name, value) => ({
      apiVersion: 'v1',
      kind: 'PodTemplate',
      metadata: { name },
      template: {
        spec: {
          containers: [
            {
              ...container(0),
              env: repeated(30_000, (index) => ({ name: `v${index}`, value })),
            },
          ],
        },
      },
    }),
  },
  {
    name: 'a custom object of many items',
    collection: customs,
    kind: '',
    object: (name, value) => ({
      apiVersion: 'steps.io/v1',
      kind: 'Step',
      metadata: { name },
      spec: {
        items: repeated(24_000, (index) => ({ name: `i${index}`, value, on: index % 2 === 0 })),
      },
    }),
  },
];

const admission = '/apis/admissionregistration.svc.io/v1';

const encodings: Readonly<Record<string, (object: JsonObject, kind: string) => Buffer>> = {
  'application/json': (object) => Buffer.from(JSON.stringify(object)),
  'application/yaml': (object) => Buffer.from(encodeYaml(object)),
  'application/cbor': (object) => Buffer.from(encodeCbor(object)),
  [dialect.protobufMediaType]: (object, kind) =>
    Buffer.from(encodeEnvelope(schemaOf(kind).schema, object)),
};

/** The object with its wide parts reduced to what a body of that type may contain. */
export function fitting(object: JsonObject, type: string, scale = 1): JsonObject {
  const values = (type === 'application/yaml' ? yamlValues : bodyValues) * scale;
  const text = JSON.stringify(object);
  const share = Math.min(1, values / countOf(text), (bodyBytes * scale) / text.length);
  const itemsMax = type === 'application/cbor' ? 1024 : Number.POSITIVE_INFINITY;
  const wide = (length: number) =>
    Math.min(itemsMax, length < 500 ? length : Math.floor(length * share));
  const cut = (value: JsonValue | undefined): JsonValue => {
    if (Array.isArray(value)) return value.slice(0, wide(value.length)).map(cut);
    if (!isObject(value)) return value ?? null;
    const members = Object.entries(value);
    const kept = members.slice(0, Math.min(objectMembersMax, wide(members.length)));
    return Object.fromEntries(kept.map(([name, member]) => [name, cut(member)]));
  };
  return cut(object) as JsonObject;
}

/** Number of values in a JSON text, as its decoder counts them: commas and containers. */
const countOf = (text: string) => 1 + (text.match(/[,{[]/g)?.length ?? 0);

function writesOf(shape: Shape): readonly StepCase[] {
  const { collection, kind, object } = shape;
  const types = Object.keys(encodings).filter(
    (type) => kind !== '' || type !== dialect.protobufMediaType,
  );
  const creates = types.map(
    (type): StepCase => ({
      name: `create ${shape.name}, ${type}`,
      make: (id, scale) => {
        const name = `o${id}`;
        const made = fitting(object(name, 'a'), type, scale);
        const body = encodings[type]?.(made, kind) ?? Buffer.alloc(0);
        return {
          request: { method: 'POST', path: collection, type, body },
          after: [remove(`${collection}/${name}`)],
        };
      },
    }),
  );
  const changes: readonly (readonly [
    name: string,
    method: string,
    type: string,
    from: 'a' | 'b',
  ])[] = [
    ['replace', 'PUT', json, 'b'],
    ['replace with the same', 'PUT', json, 'a'],
    ['merge patch', 'PATCH', 'application/merge-patch+json', 'b'],
    ['strategic patch', 'PATCH', 'application/strategic-merge-patch+json', 'b'],
    ['apply to', 'PATCH', 'application/apply-patch+yaml', 'b'],
    ['apply in YAML to', 'PATCH', 'application/apply-patch+yaml', 'b'],
  ];
  const replaced = changes
    // Custom kinds accept no strategic merge patches.
    .filter(([name]) => kind !== '' || !name.startsWith('strategic'))
    .map(([what, method, type, value]): StepCase => {
      const isYaml = what.includes('YAML');
      return {
        name: `${what} ${shape.name}`,
        make: (id, scale) => {
          const name = `o${id}`;
          const path = `${collection}/${name}`;
          const encoding = isYaml ? 'application/yaml' : json;
          const next = fitting(object(name, value), encoding, scale);
          const isVersioned = kind === '' && method === 'PUT';
          const versioned = isVersioned ? withVersion(next) : next;
          const body = encodings[encoding]?.(versioned, kind) ?? Buffer.alloc(0);
          const query = type.includes('apply') ? '?fieldManager=steps&force=true' : '';
          return {
            before: [post(collection, fitting(object(name, 'a'), json, scale))],
            request: {
              method,
              path: `${path}${query}`,
              type,
              body,
              ...(isVersioned ? { isVersioned } : {}),
            },
            after: [remove(path)],
          };
        },
      };
    });
  const small = kind === '' ? smallPatchesOf(shape) : [];
  return [...creates, ...replaced, ...small, ...removalsOf(shape), misfit(shape)];
}

/** Patches that change little of a large custom object. */
function smallPatchesOf({ name: what, collection, object }: Shape): readonly StepCase[] {
  const label = [{ op: 'add', path: '/metadata/labels', value: { a: 'b' } }];
  const replicas = { spec: { replicas: 3 } };
  const ways = [
    ['JSON patch', 'application/json-patch+json', '', label],
    ['merge patch the scale of', 'application/merge-patch+json', '/scale', replicas],
  ] as const;
  return ways.map(
    ([verb, type, subresource, patch]): StepCase => ({
      name: `${verb} ${what}`,
      make: (id, scale) => {
        const path = `${collection}/o${id}`;
        return {
          before: [post(collection, fitting(object(`o${id}`, 'a'), json, scale))],
          request: { method: 'PATCH', path: `${path}${subresource}`, type, body: bodyOf(patch) },
          after: [remove(path)],
        };
      },
    }),
  );
}

/** Deletions: of an object that disappears, of one that a finalizer keeps, and of a collection. */
function removalsOf({ name: what, collection, object }: Shape): readonly StepCase[] {
  const kept = (name: string): JsonObject => {
    const made = object(name, 'a');
    const metadata = { ...(made['metadata'] as JsonObject), finalizers: ['steps.io/kept'] };
    return { ...made, metadata };
  };
  const plain = (name: string) => object(name, 'a');
  const free = (path: string): StepRequest => ({
    method: 'PATCH',
    path,
    type: 'application/merge-patch+json',
    body: bodyOf({ metadata: { finalizers: null } }),
  });
  const ways = [
    ['delete', plain, (path: string) => remove(path), () => []],
    ['delete and keep', kept, (path: string) => remove(path), (path: string) => [free(path)]],
    ['delete all of', plain, () => remove(collection), () => []],
  ] as const;
  return ways.map(
    ([verb, make, request, after]): StepCase => ({
      name: `${verb} ${what}`,
      make: (id, scale) => {
        const path = `${collection}/o${id}`;
        return {
          before: [post(collection, fitting(make(`o${id}`), json, scale))],
          request: request(path),
          after: [...after(path)],
        };
      },
    }),
  );
}

/** A merge patch whose result does not fit its kind, so that the refusal shows the document. */
function misfit({ name: what, collection, object }: Shape): StepCase {
  return {
    name: `merge patch that does not fit ${what}`,
    make: (id, scale) => {
      const path = `${collection}/o${id}`;
      const next = fitting(object(`o${id}`, 'b'), json, scale);
      const patch = { ...next, metadata: { labels: { a: 7 } } };
      return {
        before: [post(collection, fitting(object(`o${id}`, 'a'), json, scale))],
        request: {
          method: 'PATCH',
          path,
          type: 'application/merge-patch+json',
          body: bodyOf(patch),
        },
        after: [remove(path)],
      };
    },
  };
}

const tableOf = 'application/json;as=Table;v=v1;g=meta.svc.io,application/json';

function readsOf(shape: Shape): readonly StepCase[] {
  const { collection, kind, object } = shape;
  const accepts = [
    json,
    'application/yaml',
    'application/cbor',
    tableOf,
    ...(kind === '' ? [] : [dialect.protobufMediaType]),
  ];
  const reads = [...accepts.map((accept) => [accept, ''] as const), [json, '?pretty=1'] as const];
  const watches = accepts
    .filter((accept) => !accept.includes('yaml'))
    .map((accept) => [accept, '?watch=1&timeoutSeconds=1'] as const);
  const all = [
    ...reads.map((read) => ['get', ...read] as const),
    ...reads.map((read) => ['list', ...read] as const),
    ...watches.map((watch) => ['watch', ...watch] as const),
  ];
  return all.map(
    ([verb, accept, query]): StepCase => ({
      name: `${verb} ${shape.name}, ${accept.split(',')[0]}${verb === 'watch' ? '' : query}`,
      make: (id, scale) => {
        const path = `${collection}/o${id}`;
        return {
          before: [post(collection, fitting(object(`o${id}`, 'a'), json, scale))],
          request: {
            method: 'GET',
            path: `${verb === 'get' ? path : collection}${query}`,
            accept,
          },
          after: [remove(path)],
        };
      },
    }),
  );
}

/** Objects that are rejected because every item has errors. */
const invalidPod: StepCase = {
  name: 'create a Pod of 6,000 invalid containers',
  make: () => ({
    request: post(pods, pod('invalid', '', { containers: repeated(6_000, () => ({ name: '-' })) })),
  }),
};

const jsonPatch: StepCase = {
  name: 'JSON patch of 10,000 operations',
  make: (id) => ({
    before: [post(maps, { metadata: { name: `o${id}` }, data: { k: 'v' } })],
    request: {
      method: 'PATCH',
      path: `${maps}/o${id}`,
      type: 'application/json-patch+json',
      body: bodyOf(
        repeated(10_000, (index) => ({ op: 'add', path: `/data/k${index}`, value: 'v' })),
      ),
    },
    after: [remove(`${maps}/o${id}`)],
  }),
};

const wideRole = (name: string, count: number, prefix: string): JsonObject => ({
  metadata: { name },
  rules: repeated(count, (index) => ({
    apiGroups: ['', 'apps'],
    resources: [`${prefix}${index}`],
    verbs: ['get', 'list'],
  })),
});

const escalation: StepCase = {
  name: 'create a Role of many rules that its writer does not hold',
  make: (id, scale) => {
    const own = wideRole(`own${id}`, 5_000, 'r');
    const apiGroups = ['rbac.authorization.svc.io'];
    const writing = { apiGroups, resources: ['roles'], verbs: ['create'] };
    const apiGroup = 'rbac.authorization.svc.io';
    const user = `user${id}`;
    const rules = [...(own['rules'] as JsonObject[]), writing];
    return {
      before: [
        post(`${rbac}/roles`, { ...own, rules }),
        post(`${rbac}/rolebindings`, {
          metadata: { name: `own${id}` },
          roleRef: { apiGroup, kind: 'Role', name: `own${id}` },
          subjects: [{ apiGroup, kind: 'User', name: user }],
        }),
      ],
      request: {
        ...post(`${rbac}/roles`, wideRole('wide', Math.floor(14_000 * scale), 'r')),
        user,
      },
      after: [remove(`${rbac}/roles/own${id}`), remove(`${rbac}/rolebindings/own${id}`)],
    };
  },
};

/** A definition of about 1.5 MB, like the largest in use. */
const wideDefinition = (plural: string): JsonObject => ({
  metadata: { name: `${plural}.wide.io` },
  spec: {
    group: 'wide.io',
    scope: 'Namespaced',
    names: { plural, singular: plural, kind: plural, listKind: `${plural}List` },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', properties: wideProperties() } },
          },
        },
      },
    ],
  },
});

function wideProperties(): JsonObject {
  const texts = keys(40, '');
  const leaves = Object.fromEntries(
    Object.keys(texts).map((name) => [
      name,
      { type: 'string', description: 'What this field says. '.repeat(4), maxLength: 63 },
    ]),
  );
  return Object.fromEntries(
    repeated(250, (index) => [
      `part${index}`,
      { type: 'array', items: { type: 'object', properties: leaves } },
    ]),
  );
}

const definition: StepCase = {
  name: 'create a definition of 1.5 MB',
  make: (id) => {
    const plural = `w${id.replace('-', 'x')}`;
    return {
      request: post(definitions, wideDefinition(plural)),
      after: [remove(`${definitions}/${plural}.wide.io`)],
    };
  },
};

/** Other requests with a definition of 1.5 MB. */
function definitionCases(): readonly StepCase[] {
  const pluralOf = (id: string) => `w${id.replace('-', 'x')}`;
  const pathOf = (id: string) => `${definitions}/${pluralOf(id)}.wide.io`;
  const about = (id: string, request: StepRequest) => ({
    before: [post(definitions, wideDefinition(pluralOf(id)))],
    request,
    after: [remove(pathOf(id))],
  });
  const typed = (id: string, value?: JsonObject): JsonObject => ({
    apiVersion: 'apiextensions.svc.io/v1',
    kind: 'CustomResourceDefinition',
    ...wideDefinition(pluralOf(id)),
    ...value,
  });
  const reads = [json, 'application/yaml', 'application/cbor', tableOf, dialect.protobufMediaType];
  return [
    {
      name: 'replace a definition of 1.5 MB',
      make: (id) => {
        const body = bodyOf(withVersion(typed(id)));
        return about(id, { method: 'PUT', path: pathOf(id), type: json, body, isVersioned: true });
      },
    },
    {
      name: 'apply a definition of 1.5 MB',
      make: (id) => ({
        request: {
          method: 'PATCH',
          path: `${pathOf(id)}?fieldManager=steps&force=true`,
          type: 'application/apply-patch+yaml',
          body: bodyOf(typed(id)),
        },
        after: [remove(pathOf(id))],
      }),
    },
    {
      name: 'apply to a definition of 1.5 MB',
      make: (id) =>
        about(id, {
          method: 'PATCH',
          path: `${pathOf(id)}?fieldManager=steps&force=true`,
          type: 'application/apply-patch+yaml',
          body: bodyOf(typed(id)),
        }),
    },
    ...reads.map(
      (accept): StepCase => ({
        name: `get a definition of 1.5 MB, ${accept.split(',')[0]}`,
        make: (id) => about(id, { method: 'GET', path: pathOf(id), accept }),
      }),
    ),
  ];
}

/** Unknown members everywhere, which are rejected by name. */
const unknownFields: StepCase = {
  name: 'create a PodTemplate of many unknown fields, strictly',
  make: (id, scale) => ({
    request: {
      ...post(podTemplates, {
        metadata: { name: `o${id}` },
        template: {
          spec: {
            containers: repeated(Math.floor(14_000 * scale), (index) => ({
              name: `c${index}`,
              odd: { a: index },
            })),
          },
        },
      }),
      path: `${podTemplates}?fieldValidation=Strict`,
    },
  }),
};

const celRules: StepCase = {
  name: 'create a custom object that rules in CEL validate item by item',
  make: (id) => ({
    request: post(ruled, {
      apiVersion: 'ruled.io/v1',
      kind: 'Ruled',
      metadata: { name: `o${id}` },
      spec: { items: repeated(4_000, (index) => ({ name: `i${index}` })) },
    }),
    after: [remove(`${ruled}/o${id}`)],
  }),
};

const celPolicy: StepCase = {
  name: 'create a Secret that an admission policy checks key by key',
  make: (id, scale) => ({
    request: post(secrets, {
      metadata: { name: `o${id}` },
      data: keys(Math.floor(16_000 * scale), 'YQ=='),
    }),
    after: [remove(`${secrets}/o${id}`)],
  }),
};

const document = (path: string, accept = json): StepCase => ({
  name: `the first ${path}, ${accept}`,
  isCold: true,
  make: () => ({ request: { method: 'GET', path, accept } }),
});

/** Objects that the requests require. */
export const preparations: readonly StepRequest[] = [
  post(definitions, stepDefinition),
  post(definitions, ruledDefinition),
  post(`${admission}/validatingadmissionpolicies`, policy),
  post(`${admission}/validatingadmissionpolicybindings`, policyBinding),
];

/** Requests that are known for long steps, in the order of the table. */
export const namedSteps: readonly StepCase[] = [
  {
    name: 'a small ConfigMap',
    make: (id) => ({
      request: post(maps, { metadata: { name: `o${id}` }, data: { a: 'b' } }),
      after: [remove(`${maps}/o${id}`)],
    }),
  },
  definition,
  invalidPod,
  jsonPatch,
  escalation,
  document('/openapi/v2'),
  document('/openapi/v3/api/v1'),
  unknownFields,
  celRules,
  celPolicy,
  ...definitionCases(),
  ...shapes.flatMap(writesOf),
  ...shapes.flatMap(readsOf),
  ...extremeSteps,
  ...backgroundSteps,
];

const creatable = () =>
  builtinKinds(dialect).filter((def) => def.example !== undefined && def.verbs.includes('create'));

/** A request that fills one collection of some kind to the limits of a body. */
export function stepOfKinds(pick: <T>(list: readonly T[]) => T): StepCase {
  const def = pick(creatable());
  const version = pick(def.versions);
  const collection = pick(collectionsOf(version.schema));
  const variant = pick(variants);
  return stepOf({ def, version, collection, variant, form: pick(forms), isStored: false });
}

/**
 * Whether filling a collection runs other code than filling those seen before: the metadata of all
 * kinds is the same, and the decoder drops the unknown members of any struct.
 */
function isOwn({ steps, schema }: Collection, seen: Set<string>): boolean {
  if (steps[0] !== 'metadata') {
    return schema.items !== undefined || schema.additionalProperties !== undefined;
  }
  const place = steps.join('.');
  if (seen.has(place)) return false;
  seen.add(place);
  return true;
}

/** For every kind, version, and collection, a request that fills the collection with such items. */
export function* everyStep(of: {
  readonly variant: Variant;
  readonly formName: string | undefined;
  /** Whether the objects are stored rather than sent as dry runs. */
  readonly isStored: boolean;
}): Generator<StepCase> {
  const { variant, formName = 'create', isStored } = of;
  const form = forms.find(({ name }) => name === formName);
  if (form === undefined) throw new Error(`no form ${formName}`);
  const seen = new Set<string>();
  for (const def of creatable()) {
    for (const version of def.versions) {
      for (const collection of collectionsOf(version.schema)) {
        if (!isOwn(collection, seen)) continue;
        yield stepOf({ def, version, collection, variant, form, isStored });
      }
    }
  }
}

/** Milliseconds in which controllers react to a large object. */
const storedSettleMs = 250;

function stepOf(of: {
  readonly def: ResourceDef;
  readonly version: VersionDef;
  readonly collection: Collection;
  readonly variant: Variant;
  readonly form: Form;
  readonly isStored: boolean;
}): StepCase {
  const { def, version, collection, variant, form, isStored } = of;
  const { path: place, object: example, name } = placeOf(def, version, 'default');
  const path = form.verb === 'create' ? place : `${place}/${name}`;
  const apply = form.verb === 'apply' ? '&fieldManager=steps&force=true' : '';
  const query = `?${isStored ? '' : 'dryRun=All'}${apply}`;
  const bodyAt = (scale: number): Buffer => {
    const wide = filled(example, collection, { variant, count: bodyValuesMax });
    return Buffer.from(form.encode(fitting(wide, form.type, scale), version));
  };
  let last: { readonly scale: number; readonly body: Buffer } | undefined;
  const requestOf = (scale: number): StepRequest => {
    if (last?.scale !== scale) last = { scale, body: bodyAt(scale) };
    const { body } = last;
    return { method: methods[form.verb], path: `${path}${query}`, type: form.type, body };
  };
  const before =
    form.verb === 'create' || def.isVirtual === true || def.group.startsWith('admissionreg')
      ? []
      : [post(place, example)];
  return {
    name: `${form.name} ${place}, ${variant} ${collection.steps.join('.')}`,
    ...(isStored ? { settleMs: storedSettleMs } : {}),
    make: (_, scale) => ({
      before,
      request: requestOf(scale),
      after: before.length > 0 || isStored ? [remove(`${place}/${name}`)] : [],
    }),
  };
}
