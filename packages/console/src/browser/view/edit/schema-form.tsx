import {
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
} from '@wheelhouse/machinery/browser';
import type { ComponentType } from 'preact';
import { useId, useState } from 'preact/hooks';
import type { KindSchema } from '../../model/schema.ts';
import {
  type FormField,
  formFields,
  initialValue,
  parseNumber,
  shapeOf,
} from '../../model/write/form.ts';
import { printYaml, readYaml } from '../../model/yaml.ts';
import { Fault } from '../parts/basics.tsx';

/** Fields without an input: they are fixed by the kind or written by the server. */
const omittedFields = new Set(['apiVersion', 'kind', 'status']);

/** Edits a text in a form with the fields of the kind's schema. */
export function SchemaForm(props: {
  readonly text: string;
  readonly schema: KindSchema | string | undefined;
  readonly onText: (text: string) => void;
}) {
  const { text, schema, onText } = props;
  const read = readYaml(text);
  if (read.fault !== undefined) {
    return <Fault>{`Line ${read.fault.line}: ${read.fault.message}`}</Fault>;
  }
  if (!isObject(read.value)) return <Fault>The text is not an object.</Fault>;
  if (typeof schema !== 'object') return <p>{schema ?? 'Loading the schema…'}</p>;
  const { root, schemas } = schema;
  return (
    <div class="schema-form">
      <ObjectFields
        {...{ schemas, schema: root, value: read.value, omitted: omittedFields }}
        onChange={(next) => onText(printYaml(next))}
      />
    </div>
  );
}

const noFields: ReadonlySet<string> = new Set();

/** The fields of an object: those that are set or required, and a menu to add others. */
function ObjectFields(props: {
  readonly schemas: JsonObject;
  readonly schema: JsonObject;
  readonly value: JsonObject;
  readonly omitted?: ReadonlySet<string>;
  readonly onChange: (value: JsonObject) => void;
}) {
  const { schemas, schema, value, omitted = noFields, onChange } = props;
  const fields = formFields(schemas, schema).filter(({ name }) => !omitted.has(name));
  const isShown = ({ name, isRequired }: FormField): boolean =>
    isRequired || Object.hasOwn(value, name);
  const others = fields.filter((field) => !isShown(field));
  const add = (name: string): void => {
    const field = others.find((candidate) => candidate.name === name);
    if (field === undefined) return;
    onChange({ ...value, [name]: initialValue(schemas, field.property) });
  };
  const remove = (name: string): void => {
    const { [name]: _, ...rest } = value;
    onChange(rest);
  };
  return (
    <>
      {fields.filter(isShown).map((field) => (
        <FieldRow
          key={field.name}
          {...{ schemas, field }}
          value={value[field.name]}
          onChange={(next) => onChange({ ...value, [field.name]: next })}
          onRemove={field.isRequired ? undefined : () => remove(field.name)}
        />
      ))}
      {others.length > 0 && (
        <select
          class="add"
          aria-label="Add a field"
          value=""
          onChange={(event) => add(event.currentTarget.value)}
        >
          <option value="">Add a field…</option>
          {others.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      )}
    </>
  );
}

function FieldRow(props: {
  readonly schemas: JsonObject;
  readonly field: FormField;
  readonly value: JsonValue | undefined;
  readonly onChange: (value: JsonValue) => void;
  readonly onRemove: (() => void) | undefined;
}) {
  const { schemas, field, value, onChange, onRemove } = props;
  const { name, property, description, isRequired } = field;
  return (
    <div class="form-row">
      <div class="form-head">
        <span class="form-name" title={description}>
          {name}
          {isRequired && <em> required</em>}
        </span>
        {onRemove !== undefined && (
          <button type="button" class="plain" aria-label={`Remove ${name}`} onClick={onRemove}>
            ×
          </button>
        )}
      </div>
      <ValueField {...{ schemas, property, value, onChange }} label={name} />
    </div>
  );
}

/** The input for a value of a schema. */
function ValueField(props: ValueProps) {
  const { schemas, property, label, value, onChange } = props;
  const shape = shapeOf(schemas, property);
  const scalar = value === undefined || value === null || typeof value === 'object' ? '' : value;
  switch (shape.type) {
    case 'object':
      return (
        <fieldset>
          <legend class="unseen">{label}</legend>
          <ObjectFields
            {...{ schemas, schema: shape.schema, onChange }}
            value={isObject(value) ? value : {}}
          />
        </fieldset>
      );
    case 'list':
      return <ListField {...props} item={shape.item} Value={ValueField} />;
    case 'map':
      return <MapField {...props} item={shape.item} Value={ValueField} />;
    case 'choice':
      return <ChoiceField {...{ label, onChange, values: shape.values }} value={String(scalar)} />;
    case 'boolean':
      return (
        <input
          type="checkbox"
          aria-label={label}
          checked={value === true}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
      );
    case 'number':
    case 'integer':
      return <NumberField {...{ label, onChange }} value={String(scalar)} />;
    case 'anything':
      if (isObject(value) || Array.isArray(value)) return <AnythingField {...props} />;
      return <TextField {...{ label, onChange }} value={String(scalar)} />;
    case 'text':
      return <TextField {...{ label, onChange }} value={String(scalar)} />;
  }
}

function ChoiceField(props: {
  readonly label: string;
  readonly value: string;
  readonly values: readonly string[];
  readonly onChange: (value: string) => void;
}) {
  const { label, value, values, onChange } = props;
  return (
    <select
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      {!values.includes(value) && <option value={value}>{value || 'choose…'}</option>}
      {values.map((choice) => (
        <option key={choice} value={choice}>
          {choice}
        </option>
      ))}
    </select>
  );
}

/** An input that keeps what is typed, such as `1.`, while it is not the number that it becomes. */
function NumberField(props: {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: JsonValue) => void;
}) {
  const { label, value, onChange } = props;
  const [typed, setTyped] = useState<string>();
  return (
    <input
      inputMode="decimal"
      aria-label={label}
      aria-invalid={typed !== undefined && parseNumber(typed) === undefined}
      value={typed ?? value}
      onInput={(event) => {
        const { value: text } = event.currentTarget;
        setTyped(text);
        const number = parseNumber(text);
        if (number !== undefined) onChange(number);
      }}
      onBlur={() => setTyped(undefined)}
    />
  );
}

function TextField(props: {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}) {
  const { label, value, onChange } = props;
  const id = useId();
  const shared = { id, 'aria-label': label, spellcheck: false, value };
  if (value.includes('\n')) {
    return (
      <textarea
        {...shared}
        rows={Math.min(12, value.split('\n').length + 1)}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  return <input {...shared} onInput={(event) => onChange(event.currentTarget.value)} />;
}

/** Properties of an input for a schema's value. */
interface ValueProps {
  readonly schemas: JsonObject;
  readonly property: JsonObject;
  readonly label: string;
  readonly value: JsonValue | undefined;
  readonly onChange: (value: JsonValue) => void;
}

/** A collection whose items are rendered by `Value`. */
type CollectionProps = ValueProps & {
  readonly item: JsonObject;
  readonly Value: ComponentType<ValueProps>;
};

/** A list of inputs. */
function ListField(props: CollectionProps) {
  const { schemas, item, label, value, onChange, Value } = props;
  const items = Array.isArray(value) ? value : [];
  return (
    <div class="form-items">
      {items.map((entry, index) => (
        <div class="form-item" key={index}>
          <Value
            {...{ schemas, property: item, value: entry, label: `${label} ${index + 1}` }}
            onChange={(next) => onChange(items.map((old, at) => (at === index ? next : old)))}
          />
          <Remove
            label={`Remove ${label} ${index + 1}`}
            act={() => onChange(items.filter((_, at) => at !== index))}
          />
        </div>
      ))}
      <button
        type="button"
        class="add"
        onClick={() => onChange([...items, initialValue(schemas, item)])}
      >
        Add to {label}
      </button>
    </div>
  );
}

/** A map of names to inputs. */
function MapField(props: CollectionProps) {
  const { schemas, item, label, value, onChange, Value } = props;
  const [name, setName] = useState('');
  const entries = isObject(value) ? value : {};
  const add = (): void => {
    if (name === '' || Object.hasOwn(entries, name)) return;
    onChange({ ...entries, [name]: initialValue(schemas, item) });
    setName('');
  };
  const remove = (key: string): void => {
    const { [key]: _, ...rest } = entries;
    onChange(rest);
  };
  return (
    <div class="form-items">
      {Object.entries(entries).map(([key, member]) => (
        <div class="form-item" key={key}>
          <code>{key}</code>
          <Value
            {...{ schemas, property: item, value: member, label: key }}
            onChange={(next) => onChange({ ...entries, [key]: next })}
          />
          <Remove label={`Remove ${key}`} act={() => remove(key)} />
        </div>
      ))}
      <div class="form-item">
        <input
          aria-label={`New name in ${label}`}
          placeholder="name"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter') return;
            event.preventDefault();
            add();
          }}
        />
        <button type="button" class="add" onClick={add}>
          Add to {label}
        </button>
      </div>
    </div>
  );
}

/** A value without a schema, edited as YAML. */
function AnythingField(props: ValueProps) {
  const { label, value = {}, onChange } = props;
  const [typed, setTyped] = useState({
    text: '',
    fault: '',
    value: value as JsonValue | undefined,
  });
  // After an item of a list is removed, the value is that of another item.
  const isTyped = typed.text !== '' && jsonEqual(typed.value, value);
  const { text, fault } = isTyped ? typed : { text: printYaml(value), fault: '' };
  const change = (next: string): void => {
    const read = readYaml(next);
    const result = read.fault === undefined ? read.value : value;
    setTyped({ text: next, fault: read.fault?.message ?? '', value: result });
    if (read.fault === undefined) onChange(result);
  };
  return (
    <>
      <textarea
        aria-label={label}
        spellcheck={false}
        rows={5}
        value={text}
        onInput={(event) => change(event.currentTarget.value)}
      />
      {fault !== '' && <Fault>{fault}</Fault>}
    </>
  );
}

function Remove(props: { readonly label: string; readonly act: () => void }) {
  return (
    <button type="button" class="plain" aria-label={props.label} onClick={props.act}>
      ×
    </button>
  );
}
