import {
  badRequest,
  createMetricRegistry,
  Deadlines,
  dialectOf,
  type Exchange,
  silentLogger,
  type WholeResponse,
} from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { createEncodings } from './answer/encodings.ts';
import type { EndpointContext } from './endpoints/call.ts';
import type { AuditEvent } from './gates/audit/event.ts';
import { type AuditGate, createAuditGate } from './gates/audit/gate.ts';
import { createAuditMetrics } from './gates/audit/metrics.ts';
import { alwaysAllow, createAuthorization } from './gates/authz/authorization.ts';
import { createRequestObservers, RequestObservers } from './observe/request-observers.ts';
import { RequestLifecycle } from './pipeline.ts';
import { attributesOf, parseRequest } from './request/parse-request.ts';
import {
  arrive,
  type RequestEvent,
  type RequestPhase,
  type RequestState,
  transitions,
} from './request/request-state.ts';

let clock: FakeClock;
let sent: [status: number, message: string][];
let events: string[];

beforeEach(() => {
  clock = new FakeClock();
  sent = [];
  events = [];
});

/** A request in progress on a server with a timeout of 2 minutes. */
function requestOf(method: string, url: string, audit?: AuditGate) {
  const send = ({ status, body }: WholeResponse) => {
    const { message } = JSON.parse(String(body));
    sent.push([status, message]);
    state.responseCode = status;
  };
  const state = {
    method,
    url,
    aborted: false,
    responseCode: undefined as number | undefined,
    header: () => undefined,
    connection: {},
    remoteAddress: '127.0.0.1',
    send,
    supersede() {
      if (state.aborted || state.responseCode !== undefined) return undefined;
      state.aborted = true;
      return send;
    },
  };
  const metrics = {
    observeGates: () => {},
    observe: () => void events.push('finished'),
    countTermination: () => void events.push('terminated'),
    countAfterTimeout: (of: string, came: string) => void events.push(`${of} ${came}`),
  };
  const context = {
    clock,
    metrics,
    logger: silentLogger,
    limits: { requestTimeoutMs: 120_000 },
    deadlines: new Deadlines(clock),
    encodings: createEncodings({ dialect: dialectOf('svc'), cbor: 'off' }),
  } as unknown as EndpointContext;
  const exchange = state as unknown as Exchange;
  const arrived = arrive(exchange, clock);
  const observers = createRequestObservers(context, audit);
  const request = new RequestLifecycle(arrived, { context, observers });
  const received = request.receive(arrived, parseRequest(method, url));
  return { request, received, exchange, context };
}

/** Ends a request like the pipeline when a gate or the endpoint throws. */
async function end(request: RequestLifecycle, error: unknown): Promise<void> {
  await request.finish(await request.fail(error));
}

const settle = () => new Promise((resolve) => setImmediate(resolve));
const maps = '/api/v1/namespaces/default/configmaps';
const late = {
  write: 'Timeout: request did not complete within requested timeout - context deadline exceeded',
  request: 'Timeout: request did not complete within the allotted timeout',
};

test('a write has 34 s, regardless of its request’s timeout', async () => {
  const { request, received } = requestOf('POST', `${maps}?timeout=100s`);
  clock.advance(1000);
  received.deadline.beginWrite(clock.monotonic());
  clock.advance(33_950);
  await settle();
  expect(sent).toEqual([]);
  clock.advance(100);
  await settle();
  expect(sent).toEqual([[504, late.write]]);
  expect(events).toEqual(['terminated', 'finished']);
  expect(() => request.resume()).toThrow(late.write);
});

test('a read has its request’s timeout, capped by the server’s', async () => {
  requestOf('GET', `${maps}?timeout=1h`);
  clock.advance(119_900);
  expect(sent).toEqual([]);
  clock.advance(200);
  await settle();
  expect(sent).toEqual([[504, late.request]]);
});

test('a watch has no deadline here', async () => {
  const { received } = requestOf('GET', `${maps}?watch=true&timeout=1s`);
  clock.advance(1e9);
  await settle();
  expect(sent).toEqual([]);
  expect(received.deadline.dueMs).toBe(Number.POSITIVE_INFINITY);
});

test('an answered request is not answered again', async () => {
  const { exchange } = requestOf('GET', `${maps}?timeout=1s`);
  exchange.send({ status: 200, headers: {}, body: Buffer.from('{"message":"fine"}') });
  clock.advance(10_000);
  await settle();
  expect(sent).toEqual([[200, 'fine']]);
  expect(events).toEqual([]);
});

test('a failure at the deadline is reported as a timeout', async () => {
  const { request } = requestOf('GET', `${maps}?timeout=1s`);
  clock.advance(999);
  await end(request, badRequest('the webhook was cut off'));
  await settle();
  expect(sent).toEqual([[504, late.request]]);
  expect(events).toEqual(['request error', 'terminated', 'finished']);
});

test('an earlier failure is reported as itself', async () => {
  const { request } = requestOf('GET', `${maps}?timeout=1s`);
  clock.advance(900);
  await end(request, badRequest('odd'));
  clock.advance(10_000);
  await settle();
  expect(sent).toEqual([[400, 'odd']]);
  expect(events).toEqual(['finished']);
});

test('the outcome of late work is counted once: soon, or as stuck after minutes', async () => {
  const soon = requestOf('POST', `${maps}?timeout=1s`);
  soon.received.deadline.beginWrite(clock.monotonic());
  clock.advance(2000);
  await settle();
  await end(soon.request, new Error('unforeseen'));
  expect(events.splice(0)).toEqual(['terminated', 'finished', 'write panic']);
  const stuck = requestOf('GET', `${maps}?timeout=1s`);
  clock.advance(1100);
  await settle();
  clock.advance(299_000);
  expect(events.splice(0)).toEqual(['terminated', 'finished']);
  clock.advance(2000);
  expect(events.splice(0)).toEqual(['request pending']);
  await stuck.request.finish(undefined);
  clock.advance(1e6);
  expect(events).toEqual([]);
});

describe('transition table', () => {
  const phases: readonly RequestPhase[] = [
    'arrived',
    'received',
    'authenticated',
    'admitted',
    'authorized',
    'answered',
    'timed-out',
  ];
  const events: readonly RequestEvent[] = [
    'receive',
    'authenticate',
    'record',
    'impersonate',
    'admit',
    'authorize',
    'expire',
    'finish',
  ];
  const path: Readonly<Record<RequestPhase, readonly RequestEvent[]>> = {
    arrived: [],
    received: ['receive'],
    authenticated: ['receive', 'authenticate'],
    admitted: ['receive', 'authenticate', 'admit'],
    authorized: ['receive', 'authenticate', 'admit', 'authorize'],
    answered: ['receive', 'authenticate', 'admit', 'authorize', 'finish'],
    'timed-out': ['receive', 'authenticate', 'expire'],
  };
  const user = { name: 'ada', uid: '', groups: [], extra: {} };
  const actingUser = { ...user, name: 'grace' };
  const seat = { release: () => {}, flowClass: undefined };
  const info = parseRequest('GET', `${maps}/one`);

  /** A request that has arrived, and functions that trigger each event as its gate does. */
  async function gatedRequest() {
    const { exchange, context } = requestOf('GET', `${maps}/one`);
    const seen: string[] = [];
    const note = (event: RequestEvent) => (state: RequestState) =>
      void seen.push(`${event} ${state.phase}`);
    const observer = Object.fromEntries(events.map((event) => [event, note(event)]));
    const observers = new RequestObservers([observer]);
    const permit = await createAuthorization({ chain: { list: [alwaysAllow] } }).authorize(
      attributesOf(info, user, undefined),
    );
    const arrived = arrive(exchange, clock);
    const request = new RequestLifecycle(arrived, { context, observers });
    // A gate holds the state that it received, which may be outdated. First, a state of another
    // request.
    const otherRequest = new RequestLifecycle(arrived, { context, observers });
    let received = otherRequest.receive(arrived, info);
    let authenticated = otherRequest.authenticate(received, user);
    let admitted = otherRequest.admit(authenticated, seat);
    const cause: Readonly<Record<RequestEvent, () => unknown>> = {
      receive: () => {
        received = request.receive(arrived, info);
      },
      authenticate: () => {
        authenticated = request.authenticate(received, user);
      },
      record: () => {
        authenticated = request.record(authenticated, undefined);
      },
      impersonate: () => {
        authenticated = request.impersonate(authenticated, actingUser);
      },
      admit: () => {
        admitted = request.admit(authenticated, seat);
      },
      authorize: () => request.authorize(admitted, permit),
      expire: () => request.expire(),
      finish: () => request.finish(undefined),
    };
    return { request, cause, seen };
  }

  test('covers every phase and event', () => {
    expect(Object.keys(transitions)).toEqual(phases);
    for (const row of Object.values(transitions)) expect(Object.keys(row)).toEqual(events);
  });

  const pairs = phases.flatMap((phase) =>
    events.map((event) => ({ phase, event, successor: transitions[phase][event] })),
  );

  test.each(pairs)('$phase, $event: $successor', async ({ phase, event, successor }) => {
    const { request, cause, seen } = await gatedRequest();
    for (const step of path[phase]) void cause[step]();
    await settle();
    expect(request.state.phase).toBe(phase);
    seen.length = 0;
    let error: unknown;
    try {
      await cause[event]();
    } catch (thrown) {
      error = thrown;
    }
    await settle();
    if (successor === 'rejected') {
      expect(request.state.phase).toBe(phase);
      expect(seen).toEqual([]);
      // An expired deadline of a finished request is no error.
      if (event !== 'expire') expect(error).toBeInstanceOf(Error);
      return;
    }
    expect(request.state.phase).toBe(successor);
    const isLateRecord = phase === 'timed-out' && event === 'record';
    expect(seen).toEqual(isLateRecord ? [] : [`${event} ${successor}`]);
    if (isLateRecord) expect(String(error)).toContain(late.request);
    else expect(error).toBeUndefined();
  });

  test('a state that another gate has advanced is refused', async () => {
    const { request, received } = requestOf('GET', `${maps}/one`);
    const first = request.authenticate(received, user);
    const second = request.impersonate(first, actingUser);
    expect(second).toMatchObject({ requester: user, user: actingUser });
    expect(() => request.admit(first, seat)).toThrow('rejects the event admit');
    expect(request.admit(second, seat)).toMatchObject({ requester: user, user: actingUser });
  });

  test('an audit record started after the timeout is completed', async () => {
    const stages: string[] = [];
    const sink = {
      process: (recorded: readonly AuditEvent[]) => {
        for (const { stage, responseStatus } of recorded) {
          stages.push(`${stage} ${responseStatus?.code}`);
        }
        return true;
      },
      close: async () => {},
    };
    const gate = createAuditGate({
      decide: () => ({ level: 'Metadata', omitStages: new Set(), omitManagedFields: false }),
      sink,
      metrics: createAuditMetrics(createMetricRegistry({ release: '1.32', hidden: 'hidden' })),
      dialect: dialectOf('svc'),
      clock,
      logger: silentLogger,
    });
    const { request, received } = requestOf('GET', `${maps}/one`, gate);
    const authenticated = request.authenticate(received, user);
    const audit = await gate.open(authenticated);
    clock.advance(120_100);
    await settle();
    expect(sent).toEqual([[504, late.request]]);
    expect(() => request.record(authenticated, audit)).toThrow(late.request);
    await end(request, new Error('unforeseen'));
    expect(stages).toEqual(['RequestReceived undefined', 'ResponseComplete 504']);
  });
});
