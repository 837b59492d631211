import { setMaxListeners } from 'node:events';
import { deadlineEarlyMs, type JsonObject, unprintable, type Waiting } from '@wheelhouse/machinery';
import { bodyPace } from '../answer/request-slices.ts';
import { type AuditLevel, reaches } from '../gates/audit/event.ts';
import type { RequestSide, WriteContext } from '../registry/contract.ts';
import { type Permit, type ResourceAccess, requireTarget } from '../registry/permit.ts';
import type { DeleteOptions, WriteOptions } from '../request/options.ts';
import type { ApiCall } from './call.ts';

/**
 * What the registry needs to know of a writing request besides its object.
 * @param bodyBytes the size of the request's body: the work on a large one pauses between its steps
 */
export function writeContext(
  call: ApiCall,
  options: Pick<WriteOptions, 'dryRun' | 'fieldManager'> & {
    /** The options as admission shows them, where they are not those of the query alone. */
    readonly shown?: () => JsonObject;
  },
  bodyBytes = 0,
): WriteContext {
  const { context, exchange, deadline } = call;
  return {
    permit: call.permit,
    user: call.user,
    dryRun: options.dryRun,
    fieldManager: options.fieldManager ?? managerFromUserAgent(exchange.header('user-agent')),
    warn: (text) => call.warnings.add(text),
    expired: () =>
      exchange.aborted || context.clock.monotonic() >= deadline.dueMs - deadlineEarlyMs,
    request: new CallSide(call, options.shown),
    pace: bodyPace(call, bodyBytes),
  };
}

/** A class, as it is made for every write and its members hardly ever asked for. */
class CallSide implements RequestSide {
  readonly #call: ApiCall;
  readonly #shown: (() => JsonObject) | undefined;
  #left: AbortController | undefined;

  constructor(call: ApiCall, shown: (() => JsonObject) | undefined) {
    this.#call = call;
    this.#shown = shown;
  }

  get client(): Waiting {
    return this.#call.exchange;
  }

  options(): JsonObject {
    return this.#shown?.() ?? queryOptions(this.#call.info.query);
  }

  left(): AbortSignal {
    if (this.#left !== undefined) return this.#left.signal;
    const { exchange } = this.#call;
    const controller = new AbortController();
    // Each webhook that is asked listens, and one write may concern any number.
    setMaxListeners(0, controller.signal);
    this.#left = controller;
    if (exchange.aborted) controller.abort();
    else exchange.onAbort(() => controller.abort());
    return controller.signal;
  }

  remainingMs(): number {
    return this.#call.deadline.dueMs - this.#call.context.clock.monotonic();
  }

  askedOthers(tookMs: number): void {
    this.#call.deadline.addOthersMs(tookMs);
  }

  annotate(key: string, value: string, level: AuditLevel = 'Metadata'): void {
    const { audit } = this.#call;
    if (audit !== undefined && reaches(audit.level, level)) audit.annotate(key, value);
  }
}

/** The options of a write as its query has them. */
function queryOptions(query: URLSearchParams): JsonObject {
  const dryRun = query.getAll('dryRun').filter((value) => value !== '');
  const texts = ['fieldManager', 'fieldValidation'].flatMap((name) => {
    const value = query.get(name) ?? '';
    return value === '' ? [] : [[name, value]];
  });
  return { ...(dryRun.length === 0 ? {} : { dryRun }), ...Object.fromEntries(texts) };
}

/** The options of a deletion, whatever their source, as JSON. */
export function deleteOptionsShown(options: DeleteOptions): JsonObject {
  const { gracePeriodSeconds, preconditions, orphanDependents, propagationPolicy } = options;
  return {
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(preconditions === undefined ? {} : { preconditions: definedFields(preconditions) }),
    ...(orphanDependents === undefined ? {} : { orphanDependents }),
    ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
    ...(options.dryRun ? { dryRun: ['All'] } : {}),
  };
}

function definedFields(texts: Readonly<Record<string, string | undefined>>): JsonObject {
  const found = Object.entries(texts).flatMap(([name, text]) =>
    text === undefined ? [] : [[name, text] as const],
  );
  return Object.fromEntries(found);
}

const managerBytesMax = 128;

/** Managers by the User-Agent they come of: every request of a client has the same. */
const managers = new Map<string, string>();
const managersMax = 256;
const keptAgentMax = 256;

/** The User-Agent up to its first `/` (MF-2), cut to what a manager name may be. */
function managerFromUserAgent(userAgent = ''): string {
  const cached = managers.get(userAgent);
  if (cached !== undefined) return cached;
  const manager = readManager(userAgent);
  if (userAgent.length > keptAgentMax) return manager;
  if (managers.size >= managersMax) managers.clear();
  managers.set(userAgent, manager);
  return manager;
}

function readManager(userAgent: string): string {
  const name = asUtf8(userAgent.split('/', 1)[0] ?? '').replace(unprintable, '');
  let kept = '';
  for (const one of name) {
    if (Buffer.byteLength(kept + one) > managerBytesMax) break;
    kept += one;
  }
  return kept === '' ? 'unknown' : kept;
}

/** Headers come as one character for each byte. */
function asUtf8(text: string): string {
  return /[\x80-\xff]/.test(text) && !/[^\0-\xff]/.test(text)
    ? Buffer.from(text, 'latin1').toString('utf8')
    : text;
}

/** Behind a PUT or an apply that would create: the user must be allowed to (API-5, SSA-7). */
export async function authorizeCreate(call: ApiCall): Promise<Permit<ResourceAccess>> {
  const permit = await call.context.authorize(call.user, call.info, 'create');
  return requireTarget(permit, 'create', call.target);
}
