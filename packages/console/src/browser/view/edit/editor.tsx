import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Attempt } from '../../model/access.ts';
import type { WriteMode } from '../../model/editing.ts';
import { messageOf, objectOf, textOf } from '../../model/failure.ts';
import { apiVersionOf, type Kind, type ObjectName } from '../../model/kinds.ts';
import type { LoadedObject } from '../../model/object.ts';
import { attemptOn, attemptToCreate } from '../../model/permissions.ts';
import { objectRoute, tableRoute } from '../../model/route.ts';
import { type ExplainedField, explain, type KindSchema } from '../../model/schema.ts';
import { completionsAt, contextAt } from '../../model/write/assist.ts';
import { fieldAt, withoutManagedFields } from '../../model/yaml.ts';
import { useApp, usePage, useRefusal } from '../parts/app.ts';
import { Button, Choice, Fault, Field, KindMark, Link, TextInput } from '../parts/basics.tsx';
import { ChangeList, ThreeWayList } from '../parts/changes.tsx';
import { CodeEditor, type HoverText } from './code-editor.tsx';
import {
  type Conflict,
  type Editing,
  type EditorOptions,
  type Rejection,
  type Result,
  useEditing,
  useFaults,
} from './editing-state.ts';
import { SchemaForm } from './schema-form.tsx';

/** Edits an existing object. */
export function Editor(props: {
  readonly target: ObjectName;
  readonly object: LoadedObject;
  /** The latest version of the object. */
  readonly resourceVersion: string;
  readonly onSaved: (object: LoadedObject) => void;
}) {
  const { object, resourceVersion } = props;
  const [text] = useState(() => withoutManagedFields(object.text));
  return <TextEditor {...props} text={text} latestVersion={resourceVersion} />;
}

/** Edits one object as text or in a form; the server validates it before it is saved. */
function TextEditor(props: EditorOptions & { readonly latestVersion?: string }) {
  const { latestVersion } = props;
  const editing = useEditing(props);
  const { target } = editing;
  const { kind } = target;
  const schema = useSchema(kind);
  const refusal = useRefusal([attemptOf(target, editing.mode)]);
  const faults = useFaults(editing, schema);
  const [as, setAs] = useState<'text' | 'form'>('text');
  const { path, setPath, setPlace } = usePlace(editing);
  const [goTo, setGoTo] = useState<{ readonly line: number }>();
  const assistance = useAssistance(kind, schema);
  const { base, text, replacements } = editing;
  const isOther =
    base !== undefined && latestVersion !== undefined && base.resourceVersion !== latestVersion;
  const press = (event: KeyboardEvent): void => {
    if (!event.ctrlKey && !event.metaKey) return;
    if (event.key !== 's' && event.key !== 'Enter') return;
    event.preventDefault();
    if (refusal !== undefined) return;
    void (event.key === 's' ? editing.save() : editing.validate());
  };
  return (
    <div class="editor" role="group" aria-label="Editor" onKeyDown={press}>
      <Tools {...{ editing, as, setAs, refusal }} />
      {refusal !== undefined && (
        <p class="notice plain" role="status">
          {refusal}
        </p>
      )}
      {isOther && (
        <p class="notice" role="status">
          The object has changed since you started editing.
        </p>
      )}
      <EditResult
        editing={editing}
        goTo={(line) => {
          setAs('text');
          setGoTo({ line });
        }}
      />
      <div class="split">
        {as === 'text' ? (
          <CodeEditor
            {...{ text, replacements, faults, goTo, ...assistance }}
            label={`${kind.kind} as YAML`}
            onText={(next) => editing.setText(next)}
            onPlace={setPlace}
          />
        ) : (
          <SchemaForm {...{ text, schema }} onText={(next) => editing.setText(next)} />
        )}
        <ExplainPanel {...{ kind, schema, path }} onPath={setPath} />
      </div>
    </div>
  );
}

/** Delay after typing and cursor movement before the text is parsed to find the field. */
const placeDelayMs = 150;

/** The path of the explained field: the one at the cursor, or a chosen one. */
function usePlace(editing: Editing) {
  const { clock } = useApp();
  const [path, setPath] = useState<readonly string[]>([]);
  const [place, setPlace] = useState<number>();
  useEffect(() => {
    if (place === undefined) return;
    const timer = clock.after(placeDelayMs, () => setPath(fieldAt(editing.text, place)));
    return () => timer.stop();
  }, [clock, editing, place]);
  return { path, setPath, setPlace };
}

/** The write of a mode. */
function attemptOf(target: ObjectName, mode: WriteMode): Attempt {
  if (mode === 'create') return attemptToCreate(target.kind, target.namespace);
  return attemptOn(target, mode === 'apply' ? 'patch' : 'update');
}

function useAssistance(kind: ObjectName['kind'], schema: KindSchema | string | undefined) {
  return useMemo(() => {
    const read = typeof schema === 'object' ? schema : undefined;
    return {
      completions: (text: string, offset: number) =>
        read === undefined ? undefined : completionsAt({ kind, schema: read }, text, offset),
      hover: (text: string, offset: number) =>
        read === undefined ? undefined : hoverAt(read, text, offset),
    };
  }, [kind, schema]);
}

/** The description of the field at an offset. */
function hoverAt(schema: KindSchema, text: string, offset: number): HoverText | undefined {
  const rest = /^[^\n:]*:?/.exec(text.slice(offset))?.[0] ?? '';
  const { path, at, name, prefix } = contextAt(text, offset + rest.length);
  const fieldName = at === 'value' ? name : prefix.replace(/:$/, '');
  const field = explain(schema, [...path, fieldName])?.field;
  if (field === undefined) return undefined;
  const required = field.isRequired ? ', required' : '';
  const title = `${[...path, fieldName].join('.')}: ${field.type}${required}`;
  return { title, lines: detailLines(field) };
}

function Tools(props: {
  readonly editing: Editing;
  readonly as: 'text' | 'form';
  readonly setAs: (as: 'text' | 'form') => void;
  readonly refusal: string | undefined;
}) {
  const { editing, as, setAs, refusal } = props;
  const { manager, mode, target, base } = editing;
  const isNew = base === undefined;
  return (
    <div class="bar">
      <Choice
        label="Mode"
        options={modesOf(target, isNew)}
        value={mode}
        onChange={(next) => editing.setMode(next)}
      />
      <Field label="Field manager">
        <TextInput value={manager} onText={(next) => editing.setManager(next)} />
      </Field>
      <div class="tools">
        <Button act={() => setAs(as === 'text' ? 'form' : 'text')} aria-pressed={as === 'form'}>
          {as === 'text' ? 'Edit as form' : 'Edit as YAML'}
        </Button>
        {!isNew && (
          <Button
            act={() => editing.reduce()}
            title="Reduces the text to the fields that this field manager applies"
          >
            Owned fields only
          </Button>
        )}
        <Button
          act={() => editing.validate()}
          refusal={refusal}
          title="Ctrl+Enter: a dry run that saves nothing"
        >
          Validate
        </Button>
        <Button act={() => editing.save()} class="primary" refusal={refusal} title="Ctrl+S">
          Save
        </Button>
      </div>
    </div>
  );
}

function modesOf({ kind }: ObjectName, isNew: boolean): (readonly [WriteMode, string])[] {
  const all: readonly (readonly [WriteMode, string])[] = isNew
    ? [['create', 'Create']]
    : [
        ['update', 'Replace (PUT)'],
        ['apply', 'Apply (server-side apply)'],
      ];
  return all.filter(([mode]) => kind.verbs.includes(mode === 'apply' ? 'patch' : mode));
}

/** The result of an edit and the available next steps. */
function EditResult(props: { readonly editing: Editing; readonly goTo: (line: number) => void }) {
  const { editing, goTo } = props;
  const { result } = editing;
  return (
    <div class="result" aria-live="polite">
      <ResultMessage {...{ editing, goTo, result }} />
    </div>
  );
}

function ResultMessage(props: {
  readonly editing: Editing;
  readonly goTo: (line: number) => void;
  readonly result: Result;
}) {
  const { editing, goTo, result } = props;
  switch (result.kind) {
    case 'none':
      return null;
    case 'busy':
      return <p>{result.text}</p>;
    case 'saved':
      return (
        <>
          <p class="good">Saved.</p>
          <Warnings texts={result.warnings} />
        </>
      );
    case 'valid':
      return (
        <>
          <p class="good">Valid. Nothing has been saved.</p>
          <Warnings texts={result.warnings} />
          <ChangeList changes={result.changes} none="No changes." />
        </>
      );
    case 'changed':
      return <ConflictMessage {...{ editing, result }} />;
    case 'rejected':
      return <RejectionMessage {...{ editing, goTo }} outcome={result.outcome} />;
  }
}

function Warnings(props: { readonly texts: readonly string[] }) {
  return (
    <>
      {props.texts.map((text) => (
        <p key={text} class="warning">
          {text}
        </p>
      ))}
    </>
  );
}

function RejectionMessage(props: {
  readonly editing: Editing;
  readonly goTo: (line: number) => void;
  readonly outcome: Rejection;
}) {
  const { editing, goTo, outcome } = props;
  return (
    <>
      <Fault>{outcome.message}</Fault>
      {outcome.kind === 'invalid' && outcome.faults.length > 0 && (
        <ul class="faults">
          {outcome.faults.map(({ field, message, line }) => (
            <li key={field + message}>
              {line !== undefined && (
                <button type="button" class="step" onClick={() => goTo(line)}>
                  Line {line}
                </button>
              )}
              {field !== '' && <code> {field}</code>} {message}
            </li>
          ))}
        </ul>
      )}
      {outcome.kind === 'owned' && (
        <>
          <ul class="faults">
            {outcome.conflicts.map(({ field, message }) => (
              <li key={field}>
                <code>{field}</code> {message}
              </li>
            ))}
          </ul>
          <Button act={() => editing.save('forced')} class="danger">
            Take ownership of these fields
          </Button>
        </>
      )}
    </>
  );
}

/** The options after a conflict: merge, use their version, or keep mine. */
function ConflictMessage(props: { readonly editing: Editing; readonly result: Conflict }) {
  const { editing, result } = props;
  const { message, ways, theirs, both } = result;
  return (
    <>
      <Fault>{message}</Fault>
      <ThreeWayList ways={ways} />
      <div class="actions">
        {both !== undefined && (
          <Button act={() => editing.merge(result)} class="primary">
            Merge my changes into their version
          </Button>
        )}
        <Button act={() => editing.begin(theirs, withoutManagedFields(theirs.text))}>
          Use their version
        </Button>
        <Button
          act={() => editing.begin(theirs, editing.text)}
          class="danger"
          title="Discards changes by others that this text does not contain"
        >
          Keep my version
        </Button>
      </div>
    </>
  );
}

/** The schema of a kind: undefined while loading, or a message if there is none. */
function useSchema(kind: Kind): KindSchema | string | undefined {
  const { workspace } = useApp();
  const [schema, setSchema] = useState<KindSchema | string>();
  // The kind of a page never changes, so it is not a dependency.
  useEffect(() => {
    let isUnmounted = false;
    workspace.schemas.of(kind).then(
      (loaded) => !isUnmounted && setSchema(loaded ?? 'No schema is published for this kind.'),
      (error: unknown) => !isUnmounted && setSchema(messageOf(error)),
    );
    return () => {
      isUnmounted = true;
    };
  }, [workspace]);
  return schema;
}

/** Explains the fields of a kind, one level at a time. */
function ExplainPanel(props: {
  readonly kind: Kind;
  readonly schema: KindSchema | string | undefined;
  /** Path of the field at the cursor; falls back to the nearest enclosing field. */
  readonly path: readonly string[];
  readonly onPath: (path: readonly string[]) => void;
}) {
  const { kind, schema, onPath } = props;
  return (
    <aside class="explain" aria-label="Field reference" tabIndex={0}>
      {typeof schema === 'object' ? (
        <Explained {...{ kind, schema, onPath }} path={nearestPath(schema, props.path)} />
      ) : (
        <p>{schema ?? 'Loading the schema…'}</p>
      )}
    </aside>
  );
}

function nearestPath(schema: KindSchema, path: readonly string[]): readonly string[] {
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
  const { field, fields, type, description } = explained;
  return (
    <>
      <nav aria-label="Field">
        {[kind.kind, ...path].map((name, index) => (
          <FieldLink key={name} name={name} go={() => onPath(path.slice(0, index))} />
        ))}
      </nav>
      <p>
        <code>{type}</code>
        {field?.isRequired === true && <em> required</em>}
      </p>
      {path.length === 0 && <p class="description">{description}</p>}
      {field !== undefined && <FieldDetails field={field} />}
      <dl>
        {fields.map((field) => (
          <div key={field.name}>
            <dt>
              {field.isNested ? (
                <FieldLink name={field.name} go={() => onPath([...path, field.name])} />
              ) : (
                <code>{field.name}</code>
              )}
              <small> {field.type}</small>
              {field.isRequired && <em> required</em>}
            </dt>
            <dd>
              <FieldDetails field={field} />
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}

function FieldLink(props: { readonly name: string; readonly go: () => void }) {
  return (
    <button type="button" class="step" onClick={props.go}>
      {props.name}
    </button>
  );
}

function FieldDetails(props: { readonly field: ExplainedField }) {
  return (
    <>
      {detailLines(props.field).map((line) => (
        <p key={line}>{line}</p>
      ))}
    </>
  );
}

/** The properties of a field, one per line. */
function detailLines({ description, values, defaultValue, rules }: ExplainedField): string[] {
  return [
    ...(description === '' ? [] : [description]),
    ...(values.length === 0 ? [] : [`One of: ${values.join(', ')}`]),
    ...(defaultValue === undefined ? [] : [`Default: ${defaultValue}`]),
    ...(rules.length === 0 ? [] : [rules.join(', ')]),
  ];
}

/** Creates an object of a kind. */
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
          // Text that was typed meanwhile changes the new object.
          if (workspace.hasUnsaved()) return;
          const metadata = objectOf(value, 'metadata');
          const within = textOf(metadata, 'namespace');
          const name = textOf(metadata, 'name');
          workspace.go(objectRoute({ kind, namespace: within || undefined, name }));
        }}
      />
    </section>
  );
}

/** The initial text of a new object. */
function newObjectText({ kind, namespace }: ObjectName): string {
  const within = namespace === undefined ? '' : `  namespace: ${JSON.stringify(namespace)}\n`;
  const head = `apiVersion: ${apiVersionOf(kind)}\nkind: ${kind.kind}\n`;
  return `${head}metadata:\n  name: ""\n${within}`;
}
