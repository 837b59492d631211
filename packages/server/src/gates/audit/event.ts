import { printGoTime, type Status, type UserInfo } from '@wheelhouse/machinery';

/** How much of a request is recorded, rising. */
export const auditLevels = ['None', 'Metadata', 'Request', 'RequestResponse'] as const;
export type AuditLevel = (typeof auditLevels)[number];

/** Points in a request's life at which it is recorded. */
export const auditStages = [
  'RequestReceived',
  'ResponseStarted',
  'ResponseComplete',
  'Panic',
] as const;
export type AuditStage = (typeof auditStages)[number];

/** True when `level` records at least what `wanted` does. */
export function reaches(level: AuditLevel, wanted: AuditLevel): boolean {
  return auditLevels.indexOf(level) >= auditLevels.indexOf(wanted);
}

/** What a request is about. */
export interface ObjectReference {
  resource?: string | undefined;
  namespace?: string | undefined;
  name?: string | undefined;
  uid?: string | undefined;
  apiGroup?: string | undefined;
  apiVersion?: string | undefined;
  resourceVersion?: string | undefined;
  subresource?: string | undefined;
}

export type ResponseStatus = Partial<Pick<Status, 'status' | 'message' | 'reason' | 'details'>> & {
  readonly metadata: Record<string, never>;
  readonly code?: number;
};

/** One request at one stage. Objects are JSON texts, so that exact numbers stay exact. */
export interface AuditEvent {
  readonly level: AuditLevel;
  readonly auditID: string;
  readonly stage: AuditStage;
  readonly requestURI: string;
  readonly verb: string;
  /** Absent where nobody was authenticated. */
  readonly user?: UserInfo | undefined;
  readonly impersonatedUser?: UserInfo | undefined;
  readonly sourceIPs: readonly string[];
  readonly userAgent?: string | undefined;
  readonly objectRef?: Readonly<ObjectReference> | undefined;
  readonly responseStatus?: ResponseStatus | undefined;
  readonly requestObject?: string | undefined;
  readonly responseObject?: string | undefined;
  /** Wall time, milliseconds since the epoch. */
  readonly receivedMs: number;
  readonly stageMs: number;
  readonly annotations: ReadonlyMap<string, string>;
}

/** Events do not change once made, and several back ends may want the text of one. */
const texts = new WeakMap<AuditEvent, string>();

/** The members of an event as JSON, in upstream's order, without kind and version. */
export function encodeEvent(event: AuditEvent): string {
  const cached = texts.get(event);
  if (cached !== undefined) return cached;
  const head = JSON.stringify({
    level: event.level,
    auditID: event.auditID,
    stage: event.stage,
    requestURI: event.requestURI,
    verb: event.verb,
    user: shownUser(event.user),
    impersonatedUser: event.impersonatedUser && shownUser(event.impersonatedUser),
    sourceIPs: event.sourceIPs.length === 0 ? undefined : event.sourceIPs,
    userAgent: event.userAgent,
    objectRef: event.objectRef,
    responseStatus: event.responseStatus,
  });
  const { requestObject, responseObject, annotations } = event;
  const tail = JSON.stringify({
    requestReceivedTimestamp: microTime(event.receivedMs),
    stageTimestamp: microTime(event.stageMs),
    annotations: annotations.size === 0 ? undefined : sorted(annotations),
  });
  const objects = [
    requestObject === undefined ? '' : `"requestObject":${requestObject},`,
    responseObject === undefined ? '' : `"responseObject":${responseObject},`,
  ].join('');
  const text = `${head.slice(0, -1)},${objects}${tail.slice(1)}`;
  texts.set(event, text);
  return text;
}

function shownUser(user: UserInfo | undefined): object {
  if (user === undefined) return {};
  const { name, uid, groups, extra } = user;
  return {
    username: name === '' ? undefined : name,
    uid: uid === '' ? undefined : uid,
    groups: groups.length === 0 ? undefined : groups,
    extra: Object.keys(extra).length === 0 ? undefined : extra,
  };
}

function sorted(annotations: ReadonlyMap<string, string>): Record<string, string> {
  return Object.fromEntries([...annotations].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Milliseconds since the epoch as the API writes times that count microseconds. */
function microTime(ms: number): string {
  const micros = Math.floor(ms * 1000);
  return printGoTime({ ms: Math.floor(micros / 1000), micros: micros % 1_000_000 }, 6);
}

/**
 * One line for people: the older format of the log, and what the server's own log tells of a loss.
 */
export function legacyLine(event: AuditEvent): string {
  const { user, impersonatedUser: as, objectRef, responseStatus } = event;
  const hasUser = user !== undefined && user.name !== '';
  const parts = [
    `id=${quoted(event.auditID)}`,
    `stage=${quoted(event.stage)}`,
    `ip=${quoted(event.sourceIPs[0] ?? '<unknown>')}`,
    `method=${quoted(event.verb)}`,
    `user=${quoted(hasUser ? user.name : '<none>')}`,
    `groups=${quoted(hasUser && user.groups.length > 0 ? listed(user.groups) : '<none>')}`,
    `as=${quoted(as?.name ?? '<self>')}`,
    `asgroups=${quoted(as === undefined ? '<lookup>' : listed(as.groups))}`,
    `user-agent=${quoted(event.userAgent ?? '')}`,
    `namespace=${quoted(objectRef?.namespace ?? '<none>')}`,
    `uri=${quoted(event.requestURI)}`,
    `response="${responseStatus === undefined ? '<deferred>' : (responseStatus.code ?? 0)}"`,
  ];
  return `${microTime(event.receivedMs)} AUDIT: ${parts.join(' ')}`;
}

const quoted = (text: string): string => JSON.stringify(text);
const listed = (names: readonly string[]): string => names.map(quoted).join(',');
