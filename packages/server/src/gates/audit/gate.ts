import {
  andThen,
  type Exchange,
  ipVersion,
  isLongRunning,
  type MaybePromise,
  redactSecrets,
  StatusError,
  type UserInfo,
} from '@wheelhouse/machinery';
import { auditAnnotationsOf } from '../authn/credentials.ts';
import type { AuditDecision, AuditedRequest, DecideAudit } from './policy.ts';
import { AuditTrail, type TrailHost, type TrailStart } from './trail.ts';

/** Maximum number of addresses read from X-Forwarded-For. */
const forwardedMax = 64;

/**
 * The source addresses of a request: those that proxies report in headers, followed by the address
 * of the connection, the only one that a client cannot forge.
 */
function sourceIps(exchange: Pick<Exchange, 'header' | 'remoteAddress'>): string[] {
  const forwarded = (exchange.header('x-forwarded-for') ?? '').split(',', forwardedMax);
  const addresses = forwarded
    .map((address) => address.trim())
    .filter((address) => ipVersion(address) !== 0);
  const real = (exchange.header('x-real-ip') ?? '').trim();
  if (ipVersion(real) !== 0 && !addresses.includes(real)) addresses.push(real);
  const remote = exchange.remoteAddress.replace(/^::ffff:(?=\d+\.)/i, '');
  if (ipVersion(remote) !== 0 && addresses.at(-1) !== remote) addresses.push(remote);
  return addresses;
}

/** A request that enters the audit gate. */
interface Audited {
  readonly exchange: Exchange;
  readonly info: AuditedRequest;
  readonly auditId: string;
  /** When the request arrived, in monotonic milliseconds. */
  readonly startMs: number;
}

/** Creates the audit records of requests that the policy selects (OPS-2). */
export interface AuditGate {
  /**
   * Returns the trail of a request, with its first stage recorded; undefined if the policy omits
   * the request. Throws or rejects with a 500 if a blocking backend fails to record it.
   */
  open(request: Audited & { readonly user: UserInfo }): MaybePromise<AuditTrail | undefined>;
  /** Records a request whose sender could not be authenticated. */
  reject(request: Audited & { readonly error: StatusError }): Promise<void>;
  /** Forwards buffered events; the last step before the server exits. */
  close(): Promise<void>;
}

/**
 * Creates the gate. `decide` is called once for each request, also for rejected ones; closing the
 * gate closes the sink.
 */
export function createAuditGate(options: TrailHost & { readonly decide: DecideAudit }): AuditGate {
  const { decide, metrics, sink } = options;
  const decisionOn = (request: Audited, user: UserInfo | undefined): AuditDecision => {
    const decision = decide(request.info, user);
    metrics.level(decision.level).add(1);
    return decision;
  };
  return {
    open(request) {
      const { user, exchange } = request;
      const decision = decisionOn(request, user);
      if (decision.level === 'None') return undefined;
      const trail = new AuditTrail(options, { ...startOf(request, decision), user });
      for (const [key, value] of auditAnnotationsOf(exchange) ?? []) trail.annotate(key, value);
      const required = (isRecorded: boolean): AuditTrail => {
        if (isRecorded) return trail;
        metrics.rejected.add(1);
        throw notRecorded(redactSecrets(exchange.url));
      };
      return andThen(trail.begin(), required);
    },
    async reject(request) {
      const decision = decisionOn(request, undefined);
      if (decision.level === 'None') return;
      const trail = new AuditTrail(options, { ...startOf(request, decision), user: undefined });
      trail.setResponseStatus(request.error.status);
      await trail.rejected(request.error.code);
    },
    close: () => sink.close(),
  };
}

const userAgentMax = 1024;

function startOf(
  { exchange, info, auditId, startMs }: Audited,
  decision: AuditDecision,
): Omit<TrailStart, 'user'> {
  const userAgent = exchange.header('user-agent');
  return {
    decision,
    auditID: auditId,
    startMs,
    requestURI: redactSecrets(exchange.url),
    verb: info.verb,
    sourceIPs: sourceIps(exchange),
    userAgent:
      userAgent !== undefined && userAgent.length > userAgentMax
        ? `${userAgent.slice(0, userAgentMax)}...TRUNCATED`
        : userAgent,
    objectRef: info.isResourceRequest ? referenceTo(info) : undefined,
    isLongRunning: isLongRunning(info),
  };
}

/** The object reference of a request, without its empty members. */
function referenceTo(info: AuditedRequest): TrailStart['objectRef'] {
  const nonEmpty = (text: string) => (text === '' ? undefined : text);
  return {
    resource: nonEmpty(info.resource),
    namespace: nonEmpty(info.namespace),
    name: nonEmpty(info.name),
    uid: undefined,
    apiGroup: nonEmpty(info.group),
    apiVersion: nonEmpty(info.version),
    resourceVersion: undefined,
    subresource: nonEmpty(info.subresource),
  };
}

function notRecorded(url: string): StatusError {
  return new StatusError({
    code: 500,
    reason: 'InternalError',
    message: `Internal Server Error: ${JSON.stringify(url)}: failed to store audit event`,
  });
}
