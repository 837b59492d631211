import { formatMicroTime, type Status, type UserInfo } from '@wheelhouse/machinery';

/** How much of a request is recorded, in ascending order. */
export const auditLevels = ['None', 'Metadata', 'Request', 'RequestResponse'] as const;
/** How much of a request is recorded. */
export type AuditLevel = (typeof auditLevels)[number];

/** Stages at which a request is recorded. */
export const auditStages = [
  'RequestReceived',
  'ResponseStarted',
  'ResponseComplete',
  'Panic',
] as const;
/** A stage at which a request is recorded. */
export type AuditStage = (typeof auditStages)[number];

/** Whether `level` records at least as much as `wanted`. */
export function reaches(level: AuditLevel, required: AuditLevel): boolean {
  return auditLevels.indexOf(level) >= auditLevels.indexOf(required);
}

/** The object or collection that a request concerns. */
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

/** The Status of an answer, without its kind; the code alone if the answer is an object. */
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
  /** Absent for an unauthenticated request. */
  readonly user?: UserInfo | undefined;
  readonly impersonatedUser?: UserInfo | undefined;
  readonly sourceIPs: readonly string[];
  readonly userAgent?: string | undefined;
  readonly objectRef?: Readonly<ObjectReference> | undefined;
  readonly responseStatus?: ResponseStatus | undefined;
  readonly requestObject?: string | undefined;
  readonly responseObject?: string | undefined;
  /** Wall time, milliseconds since the epoch; so is `stageMs`. */
  readonly receivedMs: number;
  readonly stageMs: number;
  readonly annotations: ReadonlyMap<string, string>;
}

/** Cached JSON of events, because several backends may need the same text. */
const texts = new WeakMap<AuditEvent, string>();

/** The members of an event as JSON, in kube-apiserver's order, without kind and apiVersion. */
export function encodeEvent(event: AuditEvent): string {
  const cached = texts.get(event);
  if (cached !== undefined) return cached;
  const head = JSON.stringify({
    level: event.level,
    auditID: event.auditID,
    stage: event.stage,
    requestURI: event.requestURI,
    verb: event.verb,
    user: encodedUser(event.user),
    impersonatedUser: event.impersonatedUser && encodedUser(event.impersonatedUser),
    sourceIPs: event.sourceIPs.length === 0 ? undefined : event.sourceIPs,
    userAgent: event.userAgent,
    objectRef: event.objectRef,
    responseStatus: event.responseStatus,
  });
  const { requestObject, responseObject, annotations } = event;
  const tail = JSON.stringify({
    requestReceivedTimestamp: formatMicroTime(event.receivedMs),
    stageTimestamp: formatMicroTime(event.stageMs),
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

function encodedUser(user: UserInfo | undefined): object {
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

/** Formats an event as one human-readable line, for the legacy log and reports of lost events. */
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
  return `${formatMicroTime(event.receivedMs)} AUDIT: ${parts.join(' ')}`;
}

const quoted = (text: string): string => JSON.stringify(text);
const listed = (names: readonly string[]): string => names.map(quoted).join(',');
