import { useState } from 'preact/hooks';
import type { Kind } from '../../model/kinds.ts';
import { routeOfKind, type TableRoute } from '../../model/route.ts';
import { useApp } from '../parts/app.ts';
import { Field, Form, NamespaceInput, TextInput } from '../parts/basics.tsx';

/** Which objects: the form leads to the address of what it says. */
export function FilterForm(props: { readonly kind: Kind; readonly at: TableRoute }) {
  const { kind, at } = props;
  const { workspace } = useApp();
  const [namespace, setNamespace] = useState(at.namespace);
  const [labels, setLabels] = useState(at.labels);
  const [fields, setFields] = useState(at.fields);
  const submit = (within = namespace): void =>
    workspace.go({
      page: 'table',
      at: {
        ...routeOfKind(kind),
        namespace: within.trim(),
        labels: labels.trim(),
        fields: fields.trim(),
      },
    });
  return (
    <Form class="filter" role="search" submit={() => submit()}>
      {kind.scope === 'Namespaced' && (
        <NamespaceInput
          several
          value={namespace}
          placeholder="all"
          onText={setNamespace}
          onCommit={submit}
        />
      )}
      <Field label="Labels">
        <TextInput value={labels} onText={setLabels} placeholder="app=web,tier!=back" />
      </Field>
      <Field label="Fields">
        <TextInput value={fields} onText={setFields} placeholder="metadata.name=web" />
      </Field>
      <button type="submit">Show</button>
    </Form>
  );
}
