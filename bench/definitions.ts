import type { LoadClient } from './client.ts';
import { type Figure, measure } from './measure.ts';
import type { Bench } from './scenarios.ts';

const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const kindsPerGroup = 10;
/** The interval for checking whether a kind is served, in milliseconds. */
const checkEveryMs = 5;
/** How long a kind may take to be served, in milliseconds. */
const servedWithinMs = 60_000;
const newKinds = 10;

/** The members of a schema; with two levels, `spec` and `status` together have 40 KB of JSON. */
function schemaProperties(levels: number): object {
  const description = 'What the member means, which values it may have, and what happens then. ';
  const member = { type: 'string', description: description.repeat(2) };
  const members: Record<string, object> = {};
  for (let index = 0; index < 14; index += 1) members[`member${index}`] = member;
  if (levels === 0) return members;
  const nested = { type: 'object', description, properties: schemaProperties(levels - 1) };
  return {
    ...members,
    rules: { type: 'array', items: nested },
    settings: nested,
    references: { type: 'object', additionalProperties: member },
  };
}

interface Kind {
  readonly group: string;
  readonly plural: string;
  readonly kind: string;
}

function kindAt(bench: Bench, n: number): Kind {
  const group = `${bench.namespace}-${Math.floor(n / kindsPerGroup)}.example.com`;
  return { group, plural: `things${n}`, kind: `Thing${n}` };
}

function definition({ group, plural, kind }: Kind): Buffer {
  const properties = schemaProperties(2);
  const part = { type: 'object', properties };
  const openAPIV3Schema = { type: 'object', properties: { spec: part, status: part } };
  const version = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } };
  return Buffer.from(
    JSON.stringify({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.${group}` },
      spec: {
        group,
        scope: 'Namespaced',
        names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
        versions: [{ ...version, subresources: { status: {} } }],
      },
    }),
  );
}

/** Sends a request until it succeeds; @throws Error if that takes longer than a minute */
async function until(
  client: LoadClient,
  call: { readonly method: string; readonly path: string; readonly body?: Buffer },
  wanted: number,
): Promise<number> {
  const end = performance.now() + servedWithinMs;
  for (;;) {
    const answer = await client.request(call);
    if (answer.status === wanted) return answer.bytes;
    if (performance.now() > end) throw new Error(`${call.path} still answers ${answer.status}`);
    await new Promise((resolve) => setTimeout(resolve, checkEveryMs));
  }
}

/**
 * Measures definitions of custom kinds with large schemas: many created together, OpenAPI with all
 * of them, and the time from a further definition to the first object of its kind.
 */
export async function definitions(
  bench: Bench,
  options: { readonly count: number; readonly report: (figure: Figure) => void },
): Promise<void> {
  const { count, report } = options;
  const clients = bench.clientsOf(8);
  const urlOf = ({ group, plural }: Kind) =>
    `/apis/${group}/v1/namespaces/${bench.namespace}/${plural}`;
  const define = async (client: LoadClient, n: number) => {
    const body = definition(kindAt(bench, n));
    const { status } = await client.request({ method: 'POST', path, body });
    if (status !== 201) throw new Error(`status ${status} for a definition`);
  };
  const bounded = { ...bench, seconds: 600, warmUpSeconds: 0 };
  report(
    await measure({
      ...bounded,
      name: 'definition, until its kind is served',
      clients: clients.length,
      operationsMax: count,
      operation: async (n, at) => {
        const client = clients[at]!;
        await define(client, n);
        return until(client, { method: 'GET', path: urlOf(kindAt(bench, n)) }, 200);
      },
    }),
  );
  report(
    await measure({
      ...bounded,
      name: `OpenAPI v2 with ${count} definitions, first`,
      clients: 1,
      operationsMax: 1,
      operation: () => until(clients[0]!, { method: 'GET', path: '/openapi/v2' }, 200),
    }),
  );
  report(
    await measure({
      ...bounded,
      name: `definition beside ${count} others, until its first object`,
      clients: 1,
      operationsMax: newKinds,
      operation: async (n) => {
        const kind = kindAt(bench, count + n);
        await define(clients[0]!, count + n);
        const object = { apiVersion: `${kind.group}/v1`, kind: kind.kind, metadata: { name: 'a' } };
        const body = Buffer.from(JSON.stringify(object));
        return until(clients[0]!, { method: 'POST', path: urlOf(kind), body }, 201);
      },
    }),
  );
}
