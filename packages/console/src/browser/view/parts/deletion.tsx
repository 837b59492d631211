import type { Propagation } from '../../model/actions.ts';
import { Choice } from './basics.tsx';

const propagations: readonly (readonly [string, string])[] = [
  ['', 'Default of the kind'],
  ['Background', 'Background: dependents are deleted after it'],
  ['Foreground', 'Foreground: dependents are deleted before it'],
  ['Orphan', 'Orphan: dependents stay'],
];

/** What becomes of what a deleted object owns. */
export function PropagationChoice(props: {
  readonly value: string;
  readonly onChange: (value: string) => void;
}) {
  return <Choice label="Dependents" options={propagations} {...props} />;
}

/** The policy that a choice stands for; undefined for the kind's own. */
export function asPropagation(value: string): Propagation | undefined {
  return value === 'Background' || value === 'Foreground' || value === 'Orphan' ? value : undefined;
}
