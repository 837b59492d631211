import { encodeJsonSteps, parseAhead, parseWrittenJson } from '@wheelhouse/codec';
import {
  background,
  type Clock,
  type Dialect,
  errorText,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonObject,
  type Logger,
  type MaybePromise,
  runInOnePiece,
  type Status,
  type UserInfo,
} from '@wheelhouse/machinery';
import { printGoDuration } from '@wheelhouse/schema';
import type { AuthorizationResult } from '../../registry/permit.ts';
import {
  type AuditEvent,
  type AuditLevel,
  type AuditStage,
  type ObjectReference,
  type ResponseStatus,
  reaches,
} from './event.ts';
import type { AuditMetrics } from './metrics.ts';
import type { AuditDecision } from './policy.ts';
import type { AuditSink } from './sink.ts';

/** Dependencies of all trails. */
export interface TrailHost {
  readonly sink: AuditSink;
  readonly metrics: AuditMetrics;
  readonly dialect: Dialect;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The attributes of a request that are known when its trail begins. */
export type TrailStart = Pick<
  AuditEvent,
  'auditID' | 'requestURI' | 'verb' | 'user' | 'sourceIPs' | 'userAgent'
> & {
  readonly decision: AuditDecision;
  readonly objectRef: ObjectReference | undefined;
  /** When the request arrived, in monotonic milliseconds. */
  readonly startMs: number;
  /** Whether the answer is a stream, whose start is a separate stage. */
  readonly isLongRunning: boolean;
};

/** Latency in milliseconds above which a request is annotated with it. */
const slowMs = 500;

/**
 * The audit record of one request that the policy selects: collects its attributes and sends an
 * event to the backends at each stage (OPS-2). Bodies are retained only if the level records them.
 */
export class AuditTrail {
  readonly #host: TrailHost;
  readonly #start: TrailStart;
  readonly #objectRef: ObjectReference | undefined;
  readonly #annotations = new Map<string, string>();
  #impersonatedUser: UserInfo | undefined;
  #responseStatus: ResponseStatus | undefined;
  #requestObject: string | undefined;
  #responseObject: string | undefined;
  #hasStarted = false;
  /** The age of the request at which its answer became a stream. */
  #streamedMs: number | undefined;
  /** Wall time of the arrival. */
  readonly #receivedMs: number;
  /** Whether the last stage has been recorded, or will be when the stream ends. */
  #isFinalStageRecorded = false;

  constructor(host: TrailHost, start: TrailStart) {
    this.#host = host;
    this.#start = start;
    this.#objectRef = start.objectRef;
    this.#receivedMs = host.clock.now() - this.#ageMs();
  }

  get level(): AuditLevel {
    return this.#start.decision.level;
  }

  /** Records the first stage; returns false if the backends could not record it. */
  begin(): MaybePromise<boolean> {
    return this.#record('RequestReceived');
  }

  /** Sets the user that the requester impersonates. */
  setImpersonatedUser(user: UserInfo): void {
    this.#impersonatedUser = user;
  }

  /** Sets the authorization decision on the request. */
  setDecision({ decision, reason }: AuthorizationResult): void {
    const group = this.#host.dialect.group('authorization');
    this.annotate(`${group}/decision`, decision === 'allow' ? 'allow' : 'forbid');
    this.annotate(`${group}/reason`, reason);
  }

  /** Adds an annotation; an existing one is kept. */
  annotate(key: string, value: string): void {
    const present = this.#annotations.get(key);
    if (present === undefined) this.#annotations.set(key, value);
    else if (present !== value) {
      const { auditID } = this.#start;
      this.#host.logger.warn('an audit annotation is set already', { auditID, key });
    }
  }

  /** Sets the decoded request body, whose metadata completes the object reference. In steps. */
  *setRequestObject(object: JsonObject): Generator<void, void> {
    const metadata = isObject(object['metadata']) ? object['metadata'] : {};
    const ref = this.#objectRef;
    for (const field of ['namespace', 'name', 'uid', 'resourceVersion'] as const) {
      const value = metadata[field];
      if (ref !== undefined && typeof value === 'string' && value !== '') ref[field] ??= value;
    }
    if (this.recordsRequests) this.#requestObject = yield* this.#encode(object);
  }

  /** Sets the patch as the client sent it. In steps. */
  *setRequestPatch(patch: JsonValue): Generator<void, void> {
    if (this.recordsRequests) this.#requestObject = String(yield* encodeJsonSteps(patch));
  }

  /** Whether the level records requests. */
  get recordsRequests(): boolean {
    return reaches(this.level, 'Request');
  }

  /** Whether the level records answers. */
  get recordsAnswers(): boolean {
    return reaches(this.level, 'RequestResponse');
  }

  /** Whether objects are recorded without managed fields. */
  get omitsManagedFields(): boolean {
    return this.#start.decision.omitManagedFields;
  }

  /** Sets the body of the answer, as JSON text. */
  setResponseText(json: string): void {
    if (this.recordsAnswers) this.#responseObject = json;
  }

  /** Sets the body of the answer, as JSON that this server wrote. In steps. */
  *setResponseJson(json: Buffer): Generator<void, void> {
    if (!this.omitsManagedFields) {
      this.setResponseText(json.toString('utf8').trimEnd());
      return;
    }
    yield* parseAhead(json);
    this.setResponseText(yield* this.#encode(jsonObject(parseWrittenJson(json))));
  }

  /** Sets the body of the answer. */
  setResponseObject(object: JsonObject): void {
    if (this.recordsAnswers) this.#responseObject = runInOnePiece(this.#encode(object));
  }

  /** Sets the Status that answers the request, whether a failure or a success. */
  setResponseStatus(status: Status): void {
    this.#responseStatus = { metadata: {}, ...recordedStatus(status) };
    this.setResponseObject(jsonObject(status));
  }

  /**
   * Records the start of a stream that outlives the endpoint; the caller calls the result at its
   * end.
   */
  beginStream(code: number): () => void {
    this.#isFinalStageRecorded = true;
    this.#streamedMs = this.#ageMs();
    this.#setCode(code);
    background({ where: 'audit' }, this.#recordStart());
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#annotateLatency();
      background({ where: 'audit' }, this.#record('ResponseComplete'));
    };
  }

  /** Records the end of the request, unless a stream continues. */
  async complete(code: number | undefined): Promise<void> {
    if (this.#isFinalStageRecorded) return;
    if (code !== undefined) this.#setCode(code);
    this.#responseStatus ??= { metadata: {}, ...closedEarly };
    if (this.#start.isLongRunning) await this.#recordStart();
    this.#annotateLatency();
    await this.#record('ResponseComplete');
  }

  /** Records a request that was rejected before it was authenticated. */
  async rejected(code: number): Promise<void> {
    this.#setCode(code);
    await this.#recordStart();
  }

  /** Records an unexpected error, which is the last stage of the request. */
  panic(error: unknown): void {
    this.#isFinalStageRecorded = true;
    const message = `APIServer panic'd: ${errorText(error)}`;
    const failure = { status: 'Failure', reason: 'InternalError', code: 500 } as const;
    this.#responseStatus = { metadata: {}, ...failure, message };
    background({ where: 'audit' }, this.#record('Panic'));
  }

  #recordStart(): MaybePromise<boolean> {
    if (this.#hasStarted) return true;
    this.#hasStarted = true;
    return this.#record('ResponseStarted');
  }

  #setCode(code: number): void {
    this.#responseStatus = { metadata: {}, ...this.#responseStatus, code };
  }

  /** A watch lasts as long as its client wants, and other streams are measured until they begin. */
  #annotateLatency(): void {
    const tookMs = this.#streamedMs ?? this.#ageMs();
    if (tookMs <= slowMs || this.#start.verb === 'watch') return;
    const total = printGoDuration(BigInt(Math.round(tookMs * 1e6)));
    this.annotate(`${this.#host.dialect.group('apiserver.latency')}/total`, total);
  }

  /** Milliseconds since the request arrived. */
  #ageMs(): number {
    return this.#host.clock.monotonic() - this.#start.startMs;
  }

  #record(stage: AuditStage): MaybePromise<boolean> {
    const { decision, objectRef: _, isLongRunning: __, startMs: ___, ...start } = this.#start;
    if (decision.omitStages.has(stage)) return true;
    const { sink, metrics, clock } = this.#host;
    metrics.events.add(1);
    const event: AuditEvent = {
      ...start,
      level: decision.level,
      stage,
      impersonatedUser: this.#impersonatedUser,
      objectRef: this.#objectRef === undefined ? undefined : { ...this.#objectRef },
      responseStatus: this.#responseStatus,
      requestObject: this.#requestObject,
      responseObject: this.#responseObject,
      receivedMs: this.#receivedMs,
      stageMs: stage === 'RequestReceived' ? this.#receivedMs : clock.now(),
      annotations: new Map(this.#annotations),
    };
    return sink.process([event]);
  }

  *#encode(object: JsonObject): Generator<void, string> {
    const shown = this.omitsManagedFields ? withoutManagedFields(object) : object;
    return String(yield* encodeJsonSteps(shown));
  }
}

const closedEarly = { code: 200, status: 'Success', message: 'Connection closed early' } as const;

function recordedStatus({ status, message, reason, details, code }: Status) {
  return {
    status,
    ...(message === undefined ? {} : { message }),
    ...(reason === undefined ? {} : { reason }),
    ...(details === undefined ? {} : { details }),
    ...(code === undefined ? {} : { code }),
  };
}

/** Removes managed fields from an object, the items of a list, or the rows of a table. */
function withoutManagedFields(object: JsonObject): JsonObject {
  const { metadata, items, rows } = object;
  const copy: JsonObject = { ...object };
  if (isObject(metadata) && metadata['managedFields'] !== undefined) {
    const { managedFields: _, ...rest } = metadata;
    copy['metadata'] = rest;
  }
  if (Array.isArray(items)) copy['items'] = items.map(itemWithoutManagedFields);
  if (Array.isArray(rows)) {
    copy['rows'] = rows.map((row) =>
      isObject(row) && isObject(row['object'])
        ? { ...row, object: withoutManagedFields(row['object']) }
        : row,
    );
  }
  return copy;
}

const itemWithoutManagedFields = (item: JsonValue): JsonValue =>
  isObject(item) && isObject(item['metadata']) ? withoutManagedFields(item) : item;
