import { useState } from 'preact/hooks';
import { objectOf, textOf } from '../../model/failure.ts';
import { apiVersionOf, type Kind, type ObjectName } from '../../model/kinds.ts';
import { objectRoute, tableRoute } from '../../model/route.ts';
import { useApp, usePage } from '../parts/app.ts';
import { KindMark, Link } from '../parts/basics.tsx';
import { TextEditor } from './editor.tsx';

/** A new object of a kind. */
export function CreatePage(props: { readonly kind: Kind; readonly namespace: string }) {
  const { kind, namespace } = props;
  const { workspace } = useApp();
  const isNamespaced = kind.scope === 'Namespaced';
  const target = { kind, namespace: isNamespaced ? namespace || 'default' : undefined, name: '' };
  const [text] = useState(() => newObjectText(target));
  usePage(`New ${kind.kind}`);
  return (
    <section class="page">
      <header class="heading">
        <KindMark kind={kind.kind} group={kind.group} />
        <div class="titles">
          <p class="crumbs">
            <Link to={tableRoute(kind, namespace)}>{kind.resource}</Link>
          </p>
          <h1>New {kind.kind}</h1>
        </div>
      </header>
      <TextEditor
        {...{ target, text }}
        object={undefined}
        onSaved={({ value }) => {
          const metadata = objectOf(value, 'metadata');
          const within = textOf(metadata, 'namespace');
          const name = textOf(metadata, 'name');
          workspace.go(objectRoute({ kind, namespace: within || undefined, name }));
        }}
      />
    </section>
  );
}

/** The text that a new object begins with. */
function newObjectText({ kind, namespace }: ObjectName): string {
  const within = namespace === undefined ? '' : `  namespace: ${JSON.stringify(namespace)}\n`;
  const head = `apiVersion: ${apiVersionOf(kind)}\nkind: ${kind.kind}\n`;
  return `${head}metadata:\n  name: ""\n${within}`;
}
