import { useId, useState } from 'preact/hooks';
import { type Attempt, matrixVerbs } from '../../model/access.ts';
import { resourceName } from '../../model/kinds.ts';
import { useApp } from '../parts/app.ts';
import { Field, NamespaceInput, TextInput } from '../parts/basics.tsx';

interface Typed {
  readonly verb: string;
  /** As on a command line: `deployments.apps/scale`. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

/** What somebody may want to do, as it is typed. */
export interface TypedAttempt {
  readonly typed: Typed;
  set(change: Partial<Typed>): void;
  read(): Attempt;
}

/** An attempt that begins with reading pods. */
export function useAttempt(namespace: string): TypedAttempt {
  const [typed, setTyped] = useState<Typed>({ verb: 'get', resource: 'pods', namespace, name: '' });
  return {
    typed,
    set: (change) => setTyped((before) => ({ ...before, ...change })),
    read() {
      const [full = '', subresource = ''] = typed.resource.trim().split('/', 2);
      const [resource = '', ...group] = full.split('.');
      return {
        verb: typed.verb.trim(),
        group: group.join('.'),
        resource,
        subresource,
        namespace: typed.namespace.trim(),
        name: typed.name.trim(),
      };
    },
  };
}

const otherVerbs = ['bind', 'escalate', 'impersonate', 'use', 'approve', '*'];

/** Verb, resource, and where. */
export function AttemptFields(props: { readonly attempt: TypedAttempt }) {
  const { typed, set } = props.attempt;
  const { discovered } = useApp();
  const id = useId();
  const resources = new Set(discovered.kinds.map(resourceName));
  return (
    <>
      <Field label="Verb">
        <TextInput
          isRequired
          suggestions={`${id}-verbs`}
          value={typed.verb}
          onText={(verb) => set({ verb })}
        />
      </Field>
      <Field label="Resource">
        <TextInput
          isRequired
          suggestions={`${id}-resources`}
          value={typed.resource}
          onText={(resource) => set({ resource })}
        />
      </Field>
      <NamespaceInput
        value={typed.namespace}
        placeholder="everywhere"
        onText={(namespace) => set({ namespace })}
      />
      <Field label="Name">
        <TextInput value={typed.name} placeholder="any" onText={(name) => set({ name })} />
      </Field>
      <Options id={`${id}-verbs`} values={[...matrixVerbs, ...otherVerbs]} />
      <Options id={`${id}-resources`} values={[...resources]} />
    </>
  );
}

function Options(props: { readonly id: string; readonly values: readonly string[] }) {
  return (
    <datalist id={props.id}>
      {props.values.map((value) => (
        <option key={value} value={value} />
      ))}
    </datalist>
  );
}
