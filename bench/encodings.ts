import { type Figure, measure } from './measure.ts';
import type { Bench } from './scenarios.ts';

const protobuf = 'application/vnd.kubernetes.protobuf';
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';

/**
 * Sends one GET of each path in order from one client: the first use of the code that answers them.
 */
async function once(
  bench: Bench,
  name: string,
  call: { readonly paths: readonly string[]; readonly accept: string },
): Promise<Figure> {
  const client = bench.clientsOf(1)[0]!;
  const { paths, accept } = call;
  return measure({
    ...bench,
    name,
    clients: 1,
    seconds: 600,
    warmUpSeconds: 0,
    operationsMax: paths.length,
    operation: async (n) => {
      const answer = await client.request({ method: 'GET', path: paths[n]!, accept });
      if (answer.status !== 200) throw new Error(`status ${answer.status} for ${paths[n]}`);
      return answer.bytes;
    },
  });
}

/**
 * Measures an encoding on its first use and afterwards. The objects `bench-0` … must exist and must
 * not have been requested in protobuf before.
 */
export async function encodings(
  bench: Bench,
  options: { readonly objects: number; readonly report: (figure: Figure) => void },
): Promise<void> {
  const { objects, report } = options;
  const paths = Array.from({ length: objects }, (_, n) => `${bench.path}/bench-${n}`);
  const json = 'application/json';
  await once(bench, 'warm-up', { paths, accept: json });
  report(await once(bench, 'get, JSON', { paths, accept: json }));
  report(await once(bench, 'get, protobuf, first', { paths, accept: protobuf }));
  report(await once(bench, 'get, protobuf, again', { paths, accept: protobuf }));
  const list = { paths: [bench.path], accept: table };
  report(await once(bench, `table of ${objects}, first`, list));
  report(await once(bench, `table of ${objects}, again`, list));
}

/**
 * Measures the OpenAPI documents, both created and cached. The server must not have created them
 * before.
 */
export async function documents(
  bench: Bench,
  options: { readonly report: (figure: Figure) => void },
): Promise<void> {
  const asked = [
    ['OpenAPI v3 of apps/v1', '/openapi/v3/apis/apps/v1'],
    ['OpenAPI v3 of v1', '/openapi/v3/api/v1'],
    ['OpenAPI v2', '/openapi/v2'],
  ] as const;
  for (const [name, path] of asked) {
    const call = { paths: [path], accept: 'application/json' };
    options.report(await once(bench, `${name}, first`, call));
    options.report(await once(bench, `${name}, again`, call));
  }
}
