import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { beforeAll, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { eventually, type TestServer } from '../support/harness.ts';
import { kubectlIsHere, kubectlOf } from '../support/kubectl.ts';
import { withServer } from '../support/with-server.ts';
import { svcctlFor } from '../svcctl/svcctl-run.ts';
import type { OpenApiV2, OpenApiV3 } from './openapi-part.ts';

const charactersMax = 400;
/** Matches ASCII sentences with single spaces and without placeholders. */
const sentences = /^(?!.* {2})(?!.*\{\w+\})[A-Z"][ -~]*[.)]$/;

/** Definitions of all documents by name: types of OpenAPI 2, or of OpenAPI 3. */
type Definitions = Readonly<Record<string, Definition>>;

/** The members of a schema that the tests read. */
interface Definition {
  readonly description: string;
  readonly properties?: Readonly<Record<string, Definition>>;
  readonly type?: string;
  readonly format?: string;
  readonly items?: object;
  readonly additionalProperties?: object;
  readonly $ref?: string;
  readonly allOf?: readonly object[];
}

async function definitionsV3(server: TestServer): Promise<Definitions> {
  const index = await server.get('/openapi/v3');
  const found: Record<string, Definition> = {};
  for (const name of Object.keys(index.body.paths)) {
    const { body } = await server.get(`/openapi/v3/${name}`);
    Object.assign(found, body.components?.schemas);
  }
  return found;
}

interface Described {
  /** `io.k8s.api.core.v1.Pod`, or a field of it. */
  readonly path: string;
  /** Empty for a type. */
  readonly field: string;
  readonly text: string;
  /** The type that the schema describes, without defaults and merge rules. */
  readonly shape: string;
}

const withoutVersions = (names: string) => names.replace(/\.v\d+((alpha|beta)\d+)?\./g, '.');

function* describedIn(definitions: Definitions): Generator<Described> {
  for (const [name, definition] of Object.entries(definitions)) {
    const shape = withoutVersions(name);
    yield { path: name, field: '', text: definition.description, shape };
    for (const [field, schema] of Object.entries(definition.properties ?? {})) {
      const { description: text, type, format, items, additionalProperties, $ref, allOf } = schema;
      const of = [type, format, items, additionalProperties, $ref, allOf];
      const shape = withoutVersions(JSON.stringify(of));
      yield { path: `${name}.${field}`, field, text, shape };
    }
  }
}

describe.each(dialectNames)('descriptions, dialect %s', async (dialectName) => {
  const dialect = dialectOf(dialectName);
  const start = `${dialect.groupSuffix.split('.').reverse().join('.')}.`;
  let documents: { readonly form: string; readonly definitions: Definitions }[];

  const server = await withServer({ dialect: dialectName });
  beforeAll(async () => {
    const { body } = await server.get<OpenApiV2>('/openapi/v2');
    documents = [
      { form: 'v2', definitions: body.definitions },
      { form: 'v3', definitions: await definitionsV3(server) },
    ];
  });

  /** The description of a type or a field in the last document. */
  const pathText = (path: string): string => {
    for (const entry of describedIn(documents[1]?.definitions ?? {})) {
      if (entry.path === start + path) return entry.text;
    }
    throw new Error(`${path} is not in the documents`);
  };

  test('PLANE-8: every type and field served by default has a description', () => {
    for (const { form, definitions } of documents) {
      const all = [...describedIn(definitions)];
      expect(all.length, form).toBeGreaterThan(2500);
      const bare = all.filter(({ text }) => typeof text !== 'string' || text.trim() === '');
      expect(
        bare.map(({ path }) => path),
        form,
      ).toEqual([]);
    }
  });

  test(`PLANE-8: descriptions are sentences of at most ${charactersMax} characters`, () => {
    const wrong = documents
      .flatMap(({ definitions }) => [...describedIn(definitions)])
      .filter(({ text }) => text.length > charactersMax || !sentences.test(text));
    expect(wrong).toEqual([]);
  });

  test('PLANE-8: only fields of one name and type share a description', () => {
    for (const { definitions } of documents) {
      const users = new Map<string, Described>();
      const wrong: [string, string][] = [];
      for (const described of describedIn(definitions)) {
        const first = users.get(described.text) ?? described;
        users.set(described.text, first);
        if (described.field !== first.field || described.shape !== first.shape) {
          wrong.push([first.path, described.path]);
        }
      }
      expect(wrong).toEqual([]);
    }
  });

  test('PLANE-8: OpenAPI v2 and v3 have the same descriptions', () => {
    const [second = [], third = []] = documents.map(({ definitions }) =>
      [...describedIn(definitions)].map(({ path, text }) => `${path}: ${text}`).sort(),
    );
    expect(second).toEqual(third);
  });

  test('PLANE-8: descriptions use the names of the dialect', () => {
    const foreign = dialectName === 'svc' ? /k8s\.io|kubernetes|kubectl/i : /svc\.io|svc-|svcctl/;
    const wrong = documents
      .flatMap(({ definitions }) => [...describedIn(definitions)])
      .filter(({ text }) => foreign.test(text));
    expect(wrong).toEqual([]);
  });

  test.each([
    ['api.core.v1.Pod.apiVersion', 'APIVersion defines'],
    ['api.core.v1.Pod.metadata', "Standard object's metadata"],
    [
      'apimachinery.pkg.apis.meta.v1.ObjectMeta.creationTimestamp',
      'CreationTimestamp is a timestamp',
    ],
  ])('PLANE-8: %s begins with the words that conformance tests expect', (path, words) => {
    expect(pathText(path).slice(0, words.length)).toBe(words);
  });

  test('PLANE-8: svcctl explain shows them', async () => {
    const home = untilEnd(svcctlFor(server));
    const { code, out, err } = await home.run('explain pods.metadata.finalizers');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(textOf(out)).toContain(pathText('apimachinery.pkg.apis.meta.v1.ObjectMeta.finalizers'));
    const kind = (await home.run('explain pods')).out;
    expect(kind).not.toContain('<empty>');
    expect(kind).not.toContain('<no description>');
  });

  const isUpstream = dialectName === 'kubernetes';
  test.runIf(kubectlIsHere && isUpstream)('PLANE-8: unmodified kubectl shows them', async () => {
    const client = untilEnd(kubectlOf(server));
    for (const more of [[], ['--output=plaintext-openapiv2']]) {
      const { code, stdout, stderr } = await client.run(['explain', 'pods.metadata', ...more]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      const type = 'apimachinery.pkg.apis.meta.v1.ObjectMeta';
      for (const field of ['finalizers', 'labels', 'ownerReferences']) {
        expect(textOf(stdout)).toContain(pathText(`${type}.${field}`));
      }
      expect(stdout).not.toContain('<no description>');
    }
  });

  test('PLANE-8: a custom kind has its own descriptions and the common ones', async () => {
    const group = 'tides.example.com';
    const definition = {
      apiVersion: `${dialect.group('apiextensions')}/v1`,
      kind: 'CustomResourceDefinition',
      metadata: { name: `tides.${group}` },
      spec: {
        group,
        scope: 'Cluster',
        names: { plural: 'tides', kind: 'Tide', listKind: 'Tides' },
        versions: [{ name: 'v1', served: true, storage: true, schema: tideSchema }],
      },
    };
    const path = `/apis/${definition.apiVersion}/customresourcedefinitions`;
    expect((await server.post(path, definition)).status).toBe(201);
    const name = `apis/${group}/v1`;
    await eventually(async () => (await server.get(`/openapi/v3/${name}`)).status === 200);
    const { body } = await server.get<OpenApiV3>(`/openapi/v3/${name}`);
    const { schemas } = body.components;
    const tide = schemas['com.example.tides.v1.Tide'];
    const pod = documents[1]?.definitions[`${start}api.core.v1.Pod`]?.properties;
    expect(tide?.description).toBe('How high the sea is.');
    expect(tide?.properties.spec?.description).toBe('As wished.');
    expect(tide?.properties.spec?.properties.metres).toEqual({ type: 'number' });
    for (const member of ['apiVersion', 'kind', 'metadata']) {
      expect(tide?.properties[member]?.description).toMatch(/./);
      expect(tide?.properties[member]?.description).toBe(pod?.[member]?.description);
    }
    const list = schemas['com.example.tides.v1.Tides'];
    expect(list?.description).toBe('A list of Tide objects, as a list request returns it.');
    expect(list?.properties.items?.description).toContain('Tide objects');
    expect(list?.properties.metadata?.description).toContain('Tide objects');
    const older = (await server.get<OpenApiV2>('/openapi/v2')).body.definitions;
    expect(older['com.example.tides.v1.Tide']?.properties.metadata).toEqual({
      $ref: `#/definitions/${start}apimachinery.pkg.apis.meta.v1.ObjectMeta`,
      description: pod?.['metadata']?.description,
    });
  });
});

/** A client's output without its line breaks. */
const textOf = (printed: string) => printed.replace(/\s+/g, ' ');

const tideSchema = {
  openAPIV3Schema: {
    type: 'object',
    description: 'How high the sea is.',
    properties: {
      apiVersion: { type: 'string', description: 'Its author’s.' },
      spec: {
        type: 'object',
        description: 'As wished.',
        properties: { metres: { type: 'number' } },
      },
    },
  },
};
