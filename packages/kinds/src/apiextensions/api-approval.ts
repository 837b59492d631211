import {
  type Dialect,
  type FieldError,
  invalid,
  parseGoRequestUrl,
  required,
} from '@wheelhouse/machinery';
import type { Crd, CrdCondition } from '../custom/definition.ts';

type Approval = 'missing' | 'bypassed' | 'approved' | 'invalid';

/** The document that describes the policy for protected groups. */
const policy = 'https://github.com/kubernetes/enhancements/pull/1111';

/** Whether a group belongs to the vendor, so that its definitions need approval. */
function isProtectedGroup(group: string, dialect: Dialect): boolean {
  return [dialect.groupSuffix, dialect.labelDomain].some(
    (domain) => group === domain || group.endsWith(`.${domain}`),
  );
}

/** The annotation that approves a definition in a protected group. */
function approvalAnnotation(dialect: Dialect): string {
  return `api-approved.${dialect.labelDomain}`;
}

function approvalOf(crd: Crd, annotation: string): Approval {
  const text = crd.metadata.annotations?.[annotation] ?? '';
  if (text === '') return 'missing';
  if (text.startsWith('unapproved')) return 'bypassed';
  const url = parseGoRequestUrl(text);
  return typeof url !== 'string' && url.scheme !== '' && url.host !== '' ? 'approved' : 'invalid';
}

/** Error details: for an absent annotation, and for an invalid value. */
function approvalDetails(dialect: Dialect): { readonly absent: string; readonly valid: string } {
  const name = JSON.stringify(approvalAnnotation(dialect));
  const must = `protected groups must have approval annotation ${name}`;
  const valid = `${must} with either a URL or a reason starting with "unapproved", see ${policy}`;
  return { absent: `${must}, see ${policy}`, valid };
}

/**
 * Validates the approval of a definition in a protected group.
 * @param old absent on create; an update may keep the state of the old definition
 */
export function approvalErrors(crd: Crd, old: Crd | undefined, dialect: Dialect): FieldError[] {
  if (!isProtectedGroup(crd.spec.group, dialect)) return [];
  const annotation = approvalAnnotation(dialect);
  const state = approvalOf(crd, annotation);
  if (old !== undefined && approvalOf(old, annotation) === state) return [];
  const field = `metadata.annotations[${annotation}]`;
  const { absent, valid } = approvalDetails(dialect);
  if (state === 'missing') return [required(field, absent)];
  if (state !== 'invalid') return [];
  return [invalid(field, crd.metadata.annotations?.[annotation], valid)];
}

/** The type of the condition that reports the approval of a definition. */
function conditionType(dialect: Dialect): string {
  const { productName: name } = dialect;
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}APIApprovalPolicyConformant`;
}

/** The condition that reports the approval; undefined for groups that need none. */
export function approvalCondition(crd: Crd, dialect: Dialect): CrdCondition | undefined {
  if (!isProtectedGroup(crd.spec.group, dialect)) return undefined;
  const annotation = approvalAnnotation(dialect);
  const text = crd.metadata.annotations?.[annotation] ?? '';
  const { absent, valid } = approvalDetails(dialect);
  const type = conditionType(dialect);
  switch (approvalOf(crd, annotation)) {
    case 'missing':
      return { type, status: 'False', reason: 'MissingAnnotation', message: absent };
    case 'invalid':
      return { type, status: 'False', reason: 'InvalidAnnotation', message: valid };
    case 'bypassed': {
      const message = `not approved: ${JSON.stringify(text)}`;
      return { type, status: 'False', reason: 'UnapprovedAnnotation', message };
    }
    case 'approved':
      return { type, status: 'True', reason: 'ApprovedAnnotation', message: `approved in ${text}` };
  }
}
