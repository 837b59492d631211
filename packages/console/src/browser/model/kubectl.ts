import { type Kind, type ObjectName, resourceName } from './kinds.ts';

/** The kubectl command that shows the same list. */
export function getCommand(of: {
  readonly kind: Kind;
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined;
  readonly labels: string;
  readonly fields: string;
  readonly width: 'normal' | 'wide';
}): string {
  const { kind, namespace, labels, fields, width } = of;
  const where =
    kind.scope === 'Cluster' ? [] : namespace === undefined ? ['-A'] : ['-n', namespace];
  return commandOf([
    ...['kubectl', 'get', resourceName(kind), ...where],
    ...(labels === '' ? [] : ['-l', labels]),
    ...(fields === '' ? [] : ['--field-selector', fields]),
    ...(width === 'wide' ? ['-o', 'wide'] : []),
  ]);
}

/** The kubectl command for an action on an object. */
export function objectCommand(
  { kind, namespace, name }: ObjectName,
  action: 'get' | 'edit' | 'delete',
): string {
  const where = namespace === undefined ? [] : ['-n', namespace];
  const form = action === 'get' ? ['-o', 'yaml'] : [];
  return commandOf(['kubectl', action, resourceName(kind), ...where, ...form, '--', name]);
}

/** Quotes words for a POSIX shell. */
function commandOf(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(' ');
}
