import { X509Certificate } from 'node:crypto';
import { pemBlocks } from '@wheelhouse/codec';
import {
  appendAll,
  cloneJsonSteps,
  type Dialect,
  duplicate,
  type FieldError,
  firstByName,
  forbiddenField,
  formatTime,
  goItems,
  humanDuration,
  invalid,
  invalidGo,
  type JsonObject,
  jsonObject,
  notSupported,
  pathSegment,
  required,
  shownValueMax,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, textAt } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import type {
  CertificateSigningRequest,
  CertificateSigningRequestCondition,
  CertificateSigningRequestSpec,
} from '../gen/types/certificates/v1.ts';
import type { ResourceDef, Stored, Strategy, StrategyContext } from '../resource-def.ts';
import { duplicateErrors, flatMapSteps, same } from '../rules/checks.ts';
import { ensure, forEachSteps } from '../rules/fill.ts';
import { certificateRequestProblem } from './certificate-request.ts';
import { signerNameErrors } from './signer-name.ts';

/** A certificate issued for a request with `expirationSeconds`. */
export interface IssuedCertificate {
  readonly signerName: string;
  readonly requestedSeconds: number;
  /** PEM. */
  readonly certificate: string;
}

/** Receives the certificates that signers issue. */
export interface CertificateOptions {
  /** Called when a certificate with a requested duration has been stored. */
  readonly onIssued: (issued: IssuedCertificate) => void;
}

const exampleRequest = `-----BEGIN CERTIFICATE REQUEST-----
MIHNMHQCAQAwEjEQMA4GA1UEAwwHZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49
AwEHA0IABGPPdkziyHDfeyuPmG8cEsOwXeH9kIUQ5KHnUzIxRVHcztfrVL/6VgOe
EZKAb/wlVuHzz7XoWvaEZz5uZZ1cQcugADAKBggqhkjOPQQDAgNJADBGAiEAoLNt
oy3C2weihgyJZf65Yv4jsTHJ7WFg41aZ+pRWEWECIQC/5+CxXgYECZkhYgCLemO7
hp8VqeZtzXZB9Kd5W0oTgA==
-----END CERTIFICATE REQUEST-----
`;

/** CertificateSigningRequest: a request for a certificate, its approval, and the certificate. */
export function certificateSigningRequest(
  dialect: Dialect,
  options?: CertificateOptions,
): ResourceDef {
  const text = <O = JsonObject>(name: string, cell: (object: O) => string, description: string) =>
    column(name, cell, { description });
  return defineKind<CertificateSigningRequest>({
    dialect,
    facts: 'certificates',
    kind: 'CertificateSigningRequest',
    scope: 'Cluster',
    shortNames: ['csr'],
    versions: [
      {
        version: 'v1',
        columns: [
          nameColumn,
          ageColumn,
          text('SignerName', (object) => textAt(object, 'spec', 'signerName'), 'Requested signer.'),
          text('Requestor', (object) => textAt(object, 'spec', 'username'), 'Requester.'),
          text('RequestedDuration', durationCell, 'Requested lifetime of the certificate.'),
          text('Condition', conditionCell, 'State of the request and its certificate.'),
        ],
      },
    ],
    storage: {
      fieldsOf: (object) => ({ 'spec.signerName': object.spec?.signerName ?? '' }),
    },
    strategy: {
      extraMetadataChecks: {
        '': ['whole', 'change'],
        approval: ['whole', 'change'],
        status: ['whole', 'change'],
      },
      validateName: pathSegment,
      ...(options === undefined ? {} : { allocate: reportIssued(options) }),
      prepareForCreate: setRequester,
      prepareForUpdate: restoreOtherParts,
      validateCreate: (_, object) => validate(object, dialect),
      *validateUpdate(context, object, old) {
        return [
          ...(yield* validate(object, dialect)),
          ...(yield* validateStatus(object, old)),
          ...validateDecisions(object, old, context.subresource),
        ];
      },
      resetFields: {
        '': ['spec', 'status'],
        status: ['spec', 'status.conditions'],
        approval: ['spec', 'status.certificate'],
      },
    },
    subresources: [{ name: 'approval', verbs: ['get', 'patch', 'update'] }, statusSubresource],
    example: () => ({
      spec: {
        request: Buffer.from(exampleRequest).toString('base64'),
        signerName: 'example.com/signer',
        usages: ['client auth'],
      },
    }),
  });
}

function* validate(
  object: Stored<CertificateSigningRequest>,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const spec = ensure(object, 'spec');
  const errors: FieldError[] = [];
  const request = Buffer.from(spec.request ?? '', 'base64');
  const problem = certificateRequestProblem(request);
  if (problem !== undefined)
    errors.push(invalidGo('spec.request', () => goBytes(request), problem));
  appendAll(errors, yield* validateUsages(spec));
  appendAll(errors, validateSigner(spec.signerName ?? '', dialect));
  const seconds = spec.expirationSeconds;
  if (typeof seconds === 'number' && seconds < 600) {
    const detail = 'may not specify a duration less than 600 seconds (10 minutes)';
    errors.push(invalid('spec.expirationSeconds', seconds, detail));
  }
  return errors;
}

/** Bytes as Go prints them with `%#v`. */
function goBytes(bytes: Buffer): string {
  if (bytes.length === 0) return '[]byte(nil)';
  return `[]byte{${goItems([...bytes.subarray(0, shownValueMax)], (byte) => `0x${byte.toString(16)}`)}}`;
}

const usages: readonly string[] = [
  'any',
  'cert sign',
  'client auth',
  'code signing',
  'content commitment',
  'crl sign',
  'data encipherment',
  'decipher only',
  'digital signature',
  'email protection',
  'encipher only',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'key agreement',
  'key encipherment',
  'microsoft sgc',
  'netscape sgc',
  'ocsp signing',
  's/mime',
  'server auth',
  'signing',
  'timestamping',
];

function* validateUsages(
  spec: Stored<CertificateSigningRequestSpec>,
): Generator<void, FieldError[]> {
  const specUsages = spec.usages ?? [];
  const field = 'spec.usages';
  if (specUsages.length === 0) return [required(field)];
  const unknown = yield* flatMapSteps(specUsages, (usage, index) =>
    usages.includes(usage) ? [] : [notSupported(`${field}[${index}]`, usage, usages)],
  );
  return [...unknown, ...(yield* duplicateErrors(specUsages, field))];
}

const conditionsPath = 'status.conditions';

function validateSigner(name: string, dialect: Dialect): FieldError[] {
  const field = 'spec.signerName';
  if (name === dialect.label('legacy-unknown')) {
    return [invalid(field, name, 'the legacy signerName is not allowed via this API version')];
  }
  return signerNameErrors(name, field);
}

function durationCell(object: Stored<CertificateSigningRequest>): string {
  const seconds = object.spec?.expirationSeconds;
  return typeof seconds === 'number' ? humanDuration(seconds * 1000) : '<none>';
}

function conditionCell(object: Stored<CertificateSigningRequest>): string {
  const has = (type: string) => conditionOf(object, type) !== undefined;
  const decided = has('Denied') ? 'Denied' : has('Approved') ? 'Approved' : 'Pending';
  const isIssued = (object.status?.certificate ?? '') !== '';
  return `${decided}${has('Failed') ? ',Failed' : ''}${isIssued ? ',Issued' : ''}`;
}

const conditionOf = (object: Stored<CertificateSigningRequest>, type: string) =>
  conditionsOf(object, type)[0];

/** The conditions of a type: at most one, except in objects of older releases. */
const conditionsOf = (
  object: Stored<CertificateSigningRequest>,
  type: string,
): readonly Stored<CertificateSigningRequestCondition>[] =>
  allConditions(object).filter((condition) => condition.type === type);

const allConditions = (object: Stored<CertificateSigningRequest>) =>
  object.status?.conditions ?? [];

/** Returns an `allocate` that only reports an issued certificate once it is stored. */
function reportIssued({ onIssued }: CertificateOptions): NonNullable<Strategy['allocate']> {
  return async ({ subresource }, object, old) => {
    const issued = subresource === 'status' ? issuedBy(object, old) : undefined;
    return {
      settle: ({ type }) => {
        if (issued !== undefined && type === 'written') onIssued(issued);
      },
    };
  };
}

/** The certificate that a change issues for a request with a duration; undefined otherwise. */
function issuedBy(
  object: Stored<CertificateSigningRequest>,
  old: Stored<CertificateSigningRequest> | undefined,
): IssuedCertificate | undefined {
  const requestedSeconds = old?.spec?.expirationSeconds;
  const certificate = object.status?.certificate ?? '';
  if (typeof requestedSeconds !== 'number' || certificate === '') return undefined;
  if ((old?.status?.certificate ?? '') !== '') return undefined;
  const signerName = old?.spec?.signerName ?? '';
  const pem = Buffer.from(certificate, 'base64').toString('latin1');
  return { signerName, requestedSeconds, certificate: pem };
}

/** Replaces the requester in the body by the authenticated user. */
function setRequester(context: StrategyContext, object: Stored<CertificateSigningRequest>): void {
  const { name, uid, groups, extra } = context.user;
  const spec = ensure(object, 'spec');
  for (const member of ['username', 'uid', 'groups', 'extra'] as const) delete spec[member];
  spec.username = name;
  if (uid !== '') spec.uid = uid;
  if (groups.length > 0) spec.groups = [...groups];
  const entries = Object.entries(extra);
  if (entries.length > 0) {
    spec.extra = Object.fromEntries(entries.map(([key, values]) => [key, [...values]]));
  }
  object.status = {};
}

/**
 * Restores the spec, which is immutable, and the parts of status that the endpoint cannot write.
 */
function* restoreOtherParts(
  context: StrategyContext,
  object: Stored<CertificateSigningRequest>,
  old: Stored<CertificateSigningRequest>,
): Generator<void, void> {
  object.spec = yield* cloneJsonSteps(jsonObject(old.spec ?? {}));
  if (context.subresource === '') {
    object.status = yield* cloneJsonSteps(jsonObject(old.status ?? {}));
  }
  if (context.subresource === 'approval') {
    const status = yield* cloneJsonSteps(jsonObject(old.status ?? {}));
    const conditions = object.status?.conditions;
    if (conditions === undefined) delete status['conditions'];
    else status['conditions'] = conditions;
    object.status = status;
  }
  if (context.subresource === 'status') restoreDecisions(object, old);
  yield* setConditionTimes(context, object, old);
}

/**
 * Restores the members of approvals and denials, so that a signer need not repeat them. Added and
 * removed decisions are left to validation, which rejects them.
 */
function restoreDecisions(
  object: Stored<CertificateSigningRequest>,
  old: Stored<CertificateSigningRequest>,
): void {
  const conditions = object.status?.conditions;
  if (conditions === undefined) return;
  for (const type of decisions) {
    const before = [...conditionsOf(old, type)];
    if (before.length !== conditionsOf(object, type).length) continue;
    for (const [index, condition] of conditions.entries()) {
      if ((condition.type ?? '') !== type) continue;
      const decision = before.shift();
      if (decision !== undefined) conditions[index] = structuredClone(decision);
    }
  }
}

function* setConditionTimes(
  context: StrategyContext,
  object: Stored<CertificateSigningRequest>,
  old: Stored<CertificateSigningRequest>,
): Generator<void, void> {
  const now = formatTime(context.nowMs);
  const oldConditions = firstByName(old.status?.conditions ?? [], ({ type }) => type ?? '');
  yield* forEachSteps(object.status?.conditions ?? [], (condition) => {
    const before = oldConditions.get(condition.type ?? '');
    if (typeof condition.lastUpdateTime !== 'string') condition.lastUpdateTime = now;
    if (typeof condition.lastTransitionTime === 'string') return;
    const isSame = before !== undefined && same(before.status, condition.status);
    condition.lastTransitionTime = (isSame ? before.lastTransitionTime : undefined) ?? now;
  });
}

/** Validates the status; an update may keep errors of the old one. */
function* validateStatus(
  object: Stored<CertificateSigningRequest>,
  old: Stored<CertificateSigningRequest>,
): Generator<void, FieldError[]> {
  return [...(yield* validateConditions(object, old)), ...validateCertificate(object, old)];
}

const decisions = ['Approved', 'Denied'];
const opposite = new Map([
  ['Approved', 'Denied'],
  ['Denied', 'Approved'],
]);

function validateConditions(
  object: Stored<CertificateSigningRequest>,
  old: Stored<CertificateSigningRequest>,
): Generator<void, FieldError[]> {
  const before = allConditions(old).map(({ type }) => type ?? '');
  const mayContradict = decisions.every((type) => before.includes(type));
  const mayRepeat = new Set(before).size < before.length;
  const mayLackType = before.includes('');
  const seen = new Set<string>();
  return flatMapSteps(allConditions(object), (condition, index) => {
    const path = `${conditionsPath}[${index}]`;
    const type = condition.type ?? '';
    const errors: FieldError[] = [];
    if (type === '' && !mayLackType) errors.push(required(`${path}.type`));
    appendAll(errors, validateState(condition, `${path}.status`));
    const oppositeType = opposite.get(type);
    if (!mayContradict && oppositeType !== undefined && seen.has(oppositeType)) {
      const detail = 'Approved and Denied conditions are mutually exclusive';
      errors.push(invalid(`${path}.type`, type, detail));
    }
    if (!mayRepeat && seen.has(type)) errors.push(duplicate(`${path}.type`, type));
    seen.add(type);
    return errors;
  });
}

/** Types of conditions that must be True and cannot be removed. */
const permanentTypes = [...decisions, 'Failed'];

function validateState(
  condition: Stored<CertificateSigningRequestCondition>,
  path: string,
): FieldError[] {
  const state = condition.status ?? '';
  if (state === '') return [required(path)];
  const isPermanent = permanentTypes.includes(condition.type ?? '');
  const allowed = isPermanent ? ['True'] : ['False', 'True', 'Unknown'];
  return allowed.includes(state) ? [] : [notSupported(path, state, allowed)];
}

function validateCertificate(
  object: Stored<CertificateSigningRequest>,
  old: Stored<CertificateSigningRequest>,
): FieldError[] {
  const [text, before] = [certificateOf(object), certificateOf(old)];
  if (text === before || certificateProblem(before) !== undefined) return [];
  const problem = certificateProblem(text);
  return problem === undefined
    ? []
    : [invalid('status.certificate', '<certificate data>', problem)];
}

const certificateOf = (object: Stored<CertificateSigningRequest>) =>
  Buffer.from(object.status?.certificate ?? '', 'base64').toString('latin1');

/** Returns kube-apiserver's error for a PEM text that is not a certificate chain. */
function certificateProblem(text: string): string | undefined {
  if (text === '') return undefined;
  const blocks = pemBlocks(text);
  for (const { type, text: block } of blocks) {
    if (type !== 'CERTIFICATE') {
      return `only CERTIFICATE PEM blocks are allowed, found ${JSON.stringify(type)}`;
    }
    const lines = block.split('\n').slice(1, -1);
    if (lines.some((line) => line.includes(':'))) return 'no PEM block headers are permitted';
    if (lines.every((line) => line.trim() === '')) {
      return 'found CERTIFICATE PEM block containing 0 certificates';
    }
    if (!isCertificate(block)) return 'x509: malformed certificate';
  }
  return blocks.length === 0 ? 'must contain at least one CERTIFICATE PEM block' : undefined;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined;
  } catch {
    return false;
  }
}

/** Validates that only `approval` changes decisions and that only `status` sets the certificate. */
function validateDecisions(
  object: Stored<CertificateSigningRequest>,
  old: Stored<CertificateSigningRequest>,
  subresource: string,
): FieldError[] {
  const forbid = (what: string, type: string) =>
    forbiddenField(
      conditionsPath,
      `updates may not ${what} a condition of type ${JSON.stringify(type)}`,
    );
  const count = (request: Stored<CertificateSigningRequest>, type: string) =>
    conditionsOf(request, type).length;
  const removed = permanentTypes.filter((type) => count(object, type) < count(old, type));
  const changed = decisions.filter(
    (type) =>
      subresource !== 'approval' &&
      !removed.includes(type) &&
      !same([...conditionsOf(object, type)], [...conditionsOf(old, type)]),
  );
  return [
    ...removed.map((type) => forbid('remove', type)),
    ...changed.map((type) =>
      forbid(count(object, type) > count(old, type) ? 'add' : 'modify', type),
    ),
    ...validateCertificateChange(object, old, subresource),
  ];
}

function validateCertificateChange(
  object: Stored<CertificateSigningRequest>,
  old: Stored<CertificateSigningRequest>,
  subresource: string,
): FieldError[] {
  const before = certificateOf(old);
  if (certificateOf(object) === before) return [];
  const path = 'status.certificate';
  if (subresource !== 'status') {
    return [forbiddenField(path, 'updates may not set certificate content')];
  }
  if (before === '') return [];
  return [forbiddenField(path, 'updates may not modify existing certificate content')];
}
