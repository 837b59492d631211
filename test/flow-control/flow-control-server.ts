import http2 from 'node:http2';
import type { JsonObject } from '@wheelhouse/machinery';
import { type Answer, adminToken, eventually, type TestServer } from '../support/harness.ts';

/**
 * Helpers for tests of flow control: users, levels with few seats, and requests that hold a seat.
 */

export const flowGroup = '/apis/flowcontrol.apiserver.svc.io/v1';

/** Headers that impersonate a user. */
export function as(user: string, ...groups: readonly string[]) {
  return {
    headers: {
      'impersonate-user': user,
      ...(groups.length === 0 ? {} : { 'impersonate-group': groups[0] ?? '' }),
    },
  };
}

/** A level with exactly one seat on a server with few seats. */
export function narrowLevel(name: string, limitResponse: JsonObject): JsonObject {
  return {
    apiVersion: 'flowcontrol.apiserver.svc.io/v1',
    kind: 'PriorityLevelConfiguration',
    metadata: { name },
    spec: {
      type: 'Limited',
      limited: {
        nominalConcurrencyShares: 1,
        lendablePercent: 0,
        borrowingLimitPercent: 0,
        limitResponse,
      },
    },
  };
}

/** A schema that matches all requests of a user or group. */
export function schemaOf(
  name: string,
  more: { level: string; precedence: number; subject: JsonObject; method?: string },
): JsonObject {
  const all = ['*'];
  return {
    apiVersion: 'flowcontrol.apiserver.svc.io/v1',
    kind: 'FlowSchema',
    metadata: { name },
    spec: {
      priorityLevelConfiguration: { name: more.level },
      matchingPrecedence: more.precedence,
      ...(more.method === undefined ? {} : { distinguisherMethod: { type: more.method } }),
      rules: [
        {
          subjects: [more.subject],
          resourceRules: [
            { verbs: all, apiGroups: all, resources: all, namespaces: all, clusterScope: true },
          ],
          nonResourceRules: [{ verbs: all, nonResourceURLs: all }],
        },
      ],
    },
  };
}

export const ofUser = (name: string): JsonObject => ({ kind: 'User', user: { name } });
export const ofGroup = (name: string): JsonObject => ({ kind: 'Group', group: { name } });

/** A request that holds its seat until `finish`: a write whose body is incomplete. */
export interface HeldRequest {
  /** Sends the rest and returns the status of the answer. */
  finish(): Promise<number>;
  /** Closes the connection without reading the answer. */
  abort(): void;
}

const held = new Set<http2.ClientHttp2Session>();

/** Aborts the requests that a failed test left open. */
export function abortHeld(): void {
  for (const session of held) session.destroy();
  held.clear();
}

/** Starts a write that holds its seat, once it has one, until its body is complete. */
export function holdSeat(
  server: Pick<TestServer, 'url'>,
  user: string,
  ...groups: readonly string[]
): HeldRequest {
  const session = http2.connect(server.url, { rejectUnauthorized: false });
  session.on('error', () => {});
  held.add(session);
  const stream = session.request(
    {
      ':method': 'POST',
      ':path': '/api/v1/namespaces/default/configmaps?dryRun=All',
      authorization: `Bearer ${adminToken}`,
      'content-type': 'application/json',
      ...as(user, ...groups).headers,
    },
    { endStream: false },
  );
  stream.on('error', () => {});
  stream.write('{"apiVersion":"v1",');
  const status = new Promise<number>((resolve) => {
    stream.on('response', (headers) => resolve(Number(headers[':status'])));
    stream.on('close', () => resolve(0));
  });
  stream.resume();
  return {
    async finish() {
      stream.end('"kind":"ConfigMap","metadata":{"generateName":"held-"}}');
      const answered = await status;
      session.destroy();
      return answered;
    },
    abort: () => session.destroy(),
  };
}

/** The rows of one of the debug tables, each by its columns. */
export async function dumpOf(
  server: TestServer,
  page: string,
): Promise<readonly Readonly<Record<string, string>>[]> {
  const answer = await server.get(`/debug/api_priority_and_fairness/${page}`);
  const [header = [], ...rows] = answer.text
    .trimEnd()
    .split('\n')
    .map((line) => line.split(',').map((cell) => cell.trim()));
  return rows.map((row) => Object.fromEntries(row.map((cell, at) => [header[at] ?? '', cell])));
}

/** Waits until a level has the given numbers of running and waiting requests. */
export async function untilLevel(
  server: TestServer,
  name: string,
  wanted: { readonly executing: number; readonly waiting: number },
): Promise<void> {
  await eventually(
    async () => {
      const rows = await dumpOf(server, 'dump_priority_levels');
      const row = rows.find((candidate) => candidate['PriorityLevelName'] === name);
      return (
        row?.['ExecutingRequests'] === String(wanted.executing) &&
        row['WaitingRequests'] === String(wanted.waiting)
      );
    },
    `level ${name} with ${JSON.stringify(wanted)}`,
  );
}

/** Creates a level and a schema, and waits until requests match them. */
export async function configure(
  server: TestServer,
  objects: { readonly level?: JsonObject; readonly schema: JsonObject },
): Promise<void> {
  const { level, schema } = objects;
  if (level !== undefined) {
    expectCreated(await server.post(`${flowGroup}/prioritylevelconfigurations`, level));
  }
  const made = await server.post(`${flowGroup}/flowschemas`, schema);
  expectCreated(made);
  const subject = (schema as { spec: { rules: { subjects: JsonObject[] }[] } }).spec.rules[0]
    ?.subjects[0];
  const name = String((subject?.['user'] as JsonObject | undefined)?.['name'] ?? 'somebody');
  const group = (subject?.['group'] as JsonObject | undefined)?.['name'];
  await eventually(async () => {
    const groups = group === undefined ? [] : [String(group)];
    const { headers } = await server.get('/version', as(name, ...groups));
    return headers['x-kubernetes-pf-flowschema-uid'] === made.body.metadata.uid;
  }, 'the schema to rule');
}

function expectCreated(answer: Answer): void {
  if (answer.status !== 201) throw new Error(`${answer.status} ${answer.text}`);
}
