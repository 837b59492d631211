import { X509Certificate } from 'node:crypto';
import { pemBlocks } from '@wheelhouse/codec';
import {
  appendAll,
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '@wheelhouse/machinery';
import type {
  CertificateSigningRequest,
  CertificateSigningRequestCondition,
} from '../gen/types/certificates/v1.ts';
import { same } from '../rules/checks.ts';
import type { Stored } from '../stored.ts';

const field = 'status.conditions';
const decisions = ['Approved', 'Denied'];
const opposite = new Map([
  ['Approved', 'Denied'],
  ['Denied', 'Approved'],
]);
const final = [...decisions, 'Failed'];

const allConditions = (object: Stored<CertificateSigningRequest>) =>
  object.status?.conditions ?? [];

/** The conditions of a type; there is one at most, but in objects of old. */
export const conditionsOf = (
  object: Stored<CertificateSigningRequest>,
  type: string,
): readonly Stored<CertificateSigningRequestCondition>[] =>
  allConditions(object).filter((one) => one.type === type);

/** What is wrong with the status by itself; faults that the old one had already are let be. */
export function validateStatus(
  object: Stored<CertificateSigningRequest>,
  old: Stored<CertificateSigningRequest>,
): FieldError[] {
  return [...validateConditions(object, old), ...validateCertificate(object, old)];
}

function validateConditions(
  object: Stored<CertificateSigningRequest>,
  old: Stored<CertificateSigningRequest>,
): FieldError[] {
  const before = allConditions(old).map((one) => one.type ?? '');
  const mayContradict = decisions.every((type) => before.includes(type));
  const mayRepeat = new Set(before).size < before.length;
  const mayLackType = before.includes('');
  const seen = new Set<string>();
  return allConditions(object).flatMap((condition, index) => {
    const path = `${field}[${index}]`;
    const type = condition.type ?? '';
    const errors: FieldError[] = [];
    if (type === '' && !mayLackType) errors.push(required(`${path}.type`));
    appendAll(errors, validateState(condition, `${path}.status`));
    const other = opposite.get(type);
    if (!mayContradict && other !== undefined && seen.has(other)) {
      const detail = 'Approved and Denied conditions are mutually exclusive';
      errors.push(invalid(`${path}.type`, type, detail));
    }
    if (!mayRepeat && seen.has(type)) errors.push(duplicate(`${path}.type`, type));
    seen.add(type);
    return errors;
  });
}

function validateState(
  condition: Stored<CertificateSigningRequestCondition>,
  path: string,
): FieldError[] {
  const state = condition.status ?? '';
  if (state === '') return [required(path)];
  const allowed = final.includes(condition.type ?? '') ? ['True'] : ['False', 'True', 'Unknown'];
  return allowed.includes(state) ? [] : [notSupported(path, state, allowed)];
}

const certificateOf = (object: Stored<CertificateSigningRequest>) =>
  Buffer.from(object.status?.certificate ?? '', 'base64').toString('latin1');

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

/** What keeps a PEM text from being a chain of certificates, in the words of upstream and of Go. */
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

/** Decisions are made through `approval` alone, certificates given through `status`, and both once. */
export function validateDecisions(
  object: Stored<CertificateSigningRequest>,
  old: Stored<CertificateSigningRequest>,
  subresource: string,
): FieldError[] {
  const forbid = (what: string, type: string) =>
    forbiddenField(field, `updates may not ${what} a condition of type ${JSON.stringify(type)}`);
  const count = (one: Stored<CertificateSigningRequest>, type: string) =>
    conditionsOf(one, type).length;
  const removed = final.filter((type) => count(object, type) < count(old, type));
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
    ...certificateKept(object, old, subresource),
  ];
}

function certificateKept(
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
