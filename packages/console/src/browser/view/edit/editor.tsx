import { useMemo, useState } from 'preact/hooks';
import type { WriteMode } from '../../model/editing.ts';
import type { ObjectName } from '../../model/kinds.ts';
import type { LoadedObject } from '../../model/object.ts';
import { explain, type KindSchema } from '../../model/schema.ts';
import { completionsAt } from '../../model/write/completion.ts';
import { contextAt } from '../../model/write/yaml-context.ts';
import { fieldAt, withoutManagedFields } from '../../model/yaml.ts';
import { Button, Choice, Field, TextInput } from '../parts/basics.tsx';
import { CodeEditor, type HoverText } from './code-editor.tsx';
import { EditResult } from './edit-result.tsx';
import { type Editing, type EditorOptions, useEditing, useFaults } from './editing-state.ts';
import { detailLines, ExplainPanel, useSchema } from './explain-panel.tsx';
import { SchemaForm } from './schema-form.tsx';

/** Edits an object that is there. */
export function Editor(props: {
  readonly target: ObjectName;
  readonly object: LoadedObject;
  /** What the object has by now. */
  readonly resourceVersion: string;
  readonly onSaved: (object: LoadedObject) => void;
}) {
  const { object, resourceVersion } = props;
  const [text] = useState(() => withoutManagedFields(object.text));
  return <TextEditor {...props} text={text} latestVersion={resourceVersion} />;
}

/** Edits one object as text or in a form: the server judges it before anything is saved. */
export function TextEditor(props: EditorOptions & { readonly latestVersion?: string }) {
  const { target, latestVersion } = props;
  const { kind } = target;
  const editing = useEditing(props);
  const schema = useSchema(kind);
  const faults = useFaults(editing, { target, schema });
  const [as, setAs] = useState<'text' | 'form'>('text');
  const [path, setPath] = useState<readonly string[]>([]);
  const [goTo, setGoTo] = useState<{ readonly line: number }>();
  const assistance = useAssistance(kind, schema);
  const { base, text, replacements } = editing;
  const isOther =
    base !== undefined && latestVersion !== undefined && base.resourceVersion !== latestVersion;
  return (
    <div class="editor">
      <Tools {...{ editing, target, as, setAs }} isNew={props.object === undefined} />
      {isOther && (
        <p class="notice" role="status">
          Somebody has changed the object since this text was begun.
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
            onPlace={(offset) => setPath(fieldAt(editing.text, offset))}
            onSave={() => void editing.save()}
            onValidate={() => void editing.validate()}
          />
        ) : (
          <SchemaForm {...{ text, schema }} onText={(next) => editing.setText(next)} />
        )}
        <ExplainPanel {...{ kind, schema, path }} onPath={setPath} />
      </div>
    </div>
  );
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

/** What the schema says of the field whose name is at an offset. */
function hoverAt(schema: KindSchema, text: string, offset: number): HoverText | undefined {
  const rest = /^[^\n:]*:?/.exec(text.slice(offset))?.[0] ?? '';
  const { path, at, name, prefix } = contextAt(text, offset + rest.length);
  const field = at === 'value' ? name : prefix.replace(/:$/, '');
  const own = explain(schema, [...path, field])?.own;
  if (own === undefined) return undefined;
  const title = `${[...path, field].join('.')}: ${own.type}${own.isRequired ? ', required' : ''}`;
  return { title, lines: detailLines(own) };
}

function Tools(props: {
  readonly editing: Editing;
  readonly target: ObjectName;
  readonly isNew: boolean;
  readonly as: 'text' | 'form';
  readonly setAs: (as: 'text' | 'form') => void;
}) {
  const { editing, target, isNew, as, setAs } = props;
  const { manager, mode } = editing;
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
            title="Leaves what this field manager needs to say: a text to apply"
          >
            Owned fields only
          </Button>
        )}
        <Button act={() => editing.validate()} title="Ctrl+Enter: a dry run that saves nothing">
          Validate
        </Button>
        <Button act={() => editing.save()} class="primary" title="Ctrl+S">
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
        ['apply', 'Apply (own what is written)'],
      ];
  return all.filter(([mode]) => kind.verbs.includes(mode === 'apply' ? 'patch' : mode));
}
