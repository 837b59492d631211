import { useEffect, useState } from 'preact/hooks';
import { messageOf } from '../../model/failure.ts';
import type { Kind } from '../../model/kinds.ts';
import { type ExplainedField, explain, type KindSchema } from '../../model/schema.ts';
import { useApp } from '../parts/app.ts';

/** The schema of a kind: undefined while it is read, or a text that says why there is none. */
export function useSchema(kind: Kind): KindSchema | string | undefined {
  const { workspace } = useApp();
  const [schema, setSchema] = useState<KindSchema | string>();
  // Not for every change: the kind of a page stays.
  useEffect(() => {
    let isGone = false;
    workspace.schemas.of(kind).then(
      (found) => !isGone && setSchema(found ?? 'No schema is published for this kind.'),
      (error: unknown) => !isGone && setSchema(messageOf(error)),
    );
    return () => {
      isGone = true;
    };
  }, [workspace]);
  return schema;
}

/** What the fields of a kind mean, one level at a time: beside the text that has them. */
export function ExplainPanel(props: {
  readonly kind: Kind;
  readonly schema: KindSchema | string | undefined;
  /** The field at the place of the text; the nearest around it that the kind has is shown. */
  readonly path: readonly string[];
  readonly onPath: (path: readonly string[]) => void;
}) {
  const { kind, schema, onPath } = props;
  return (
    <aside class="explain" aria-label="What the fields mean" tabIndex={0}>
      {typeof schema === 'object' ? (
        <Explained {...{ kind, schema, onPath }} path={nearest(schema, props.path)} />
      ) : (
        <p>{schema ?? 'Reading the schema…'}</p>
      )}
    </aside>
  );
}

function nearest(schema: KindSchema, path: readonly string[]): readonly string[] {
  let found = path;
  while (found.length > 0 && explain(schema, found) === undefined) found = found.slice(0, -1);
  return found;
}

function Explained(props: {
  readonly kind: Kind;
  readonly schema: KindSchema;
  readonly path: readonly string[];
  readonly onPath: (path: readonly string[]) => void;
}) {
  const { kind, schema, path, onPath } = props;
  const explained = explain(schema, path);
  if (explained === undefined) return null;
  const { own, fields, type, description } = explained;
  return (
    <>
      <nav aria-label="Field">
        {[kind.kind, ...path].map((name, index) => (
          <Step key={name} name={name} go={() => onPath(path.slice(0, index))} />
        ))}
      </nav>
      <p>
        <code>{type}</code>
        {own?.isRequired === true && <em> required</em>}
      </p>
      {path.length === 0 && <p class="description">{description}</p>}
      {own !== undefined && <Details field={own} />}
      <dl>
        {fields.map((field) => (
          <div key={field.name}>
            <dt>
              {field.isNested ? (
                <Step name={field.name} go={() => onPath([...path, field.name])} />
              ) : (
                <code>{field.name}</code>
              )}
              <small> {field.type}</small>
              {field.isRequired && <em> required</em>}
            </dt>
            <dd>
              <Details field={field} />
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}

function Step(props: { readonly name: string; readonly go: () => void }) {
  return (
    <button type="button" class="step" onClick={props.go}>
      {props.name}
    </button>
  );
}

function Details(props: { readonly field: ExplainedField }) {
  return (
    <>
      {detailLines(props.field).map((line) => (
        <p key={line}>{line}</p>
      ))}
    </>
  );
}

/** What is known of a field, a line each. */
export function detailLines({ description, values, standard, rules }: ExplainedField): string[] {
  return [
    ...(description === '' ? [] : [description]),
    ...(values.length === 0 ? [] : [`One of: ${values.join(', ')}`]),
    ...(standard === undefined ? [] : [`Default: ${standard}`]),
    ...(rules.length === 0 ? [] : [rules.join(', ')]),
  ];
}
