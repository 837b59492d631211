import type { Crd } from '../../catalogue/crd-shape.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, invalid, required } from '../../meta/field-error.ts';
import { parseGoUrl } from '../../meta/go-url.ts';

type Approval = 'missing' | 'bypassed' | 'approved' | 'invalid';

/** Where the policy of protected groups is written down. */
const policy = 'https://github.com/kubernetes/enhancements/pull/1111';

/** Whether a group belongs to the vendor, so that definitions in it need approval. */
export function isProtectedGroup(group: string, dialect: Dialect): boolean {
  return [dialect.groupSuffix, dialect.labelDomain].some(
    (domain) => group === domain || group.endsWith(`.${domain}`),
  );
}

/** The annotation that approves a definition in a protected group. */
export function approvalAnnotation(dialect: Dialect): string {
  return `api-approved.${dialect.labelDomain}`;
}

function approvalOf(crd: Crd, annotation: string): Approval {
  const text = crd.metadata.annotations?.[annotation] ?? '';
  if (text === '') return 'missing';
  if (text.startsWith('unapproved')) return 'bypassed';
  // As a request's target, which has no fragment.
  const url = parseGoUrl(text.replaceAll('#', '%23'));
  return typeof url !== 'string' && url.scheme !== '' && url.host !== '' ? 'approved' : 'invalid';
}

/** Judges the approval of a definition in a protected group; a state that stays is not judged. */
export function approvalErrors(crd: Crd, old: Crd | undefined, dialect: Dialect): FieldError[] {
  if (!isProtectedGroup(crd.spec.group, dialect)) return [];
  const annotation = approvalAnnotation(dialect);
  const state = approvalOf(crd, annotation);
  if (old !== undefined && approvalOf(old, annotation) === state) return [];
  const field = `metadata.annotations[${annotation}]`;
  const must = `protected groups must have approval annotation ${JSON.stringify(annotation)}`;
  if (state === 'missing') return [required(field, `${must}, see ${policy}`)];
  if (state !== 'invalid') return [];
  const detail = `${must} with either a URL or a reason starting with "unapproved", see ${policy}`;
  return [invalid(field, crd.metadata.annotations?.[annotation], detail)];
}
