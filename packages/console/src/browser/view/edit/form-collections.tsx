import { isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery/browser';
import type { ComponentType } from 'preact';
import { useState } from 'preact/hooks';
import { firstValue } from '../../model/write/form.ts';
import { printYaml, readYaml } from '../../model/yaml.ts';
import { Fault } from '../parts/basics.tsx';

/** How a value of a schema is shown and changed. */
export interface ValueProps {
  readonly schemas: JsonObject;
  readonly property: JsonObject;
  readonly label: string;
  readonly value: JsonValue | undefined;
  readonly onChange: (value: JsonValue) => void;
}

/** A value that holds others, each shown by `Value`. */
type CollectionProps = ValueProps & {
  readonly item: JsonObject;
  readonly Value: ComponentType<ValueProps>;
};

/** A list, each item in the way its schema wants. */
export function ListField(props: CollectionProps) {
  const { schemas, item, label, value, onChange, Value } = props;
  const items = Array.isArray(value) ? value : [];
  return (
    <div class="form-items">
      {items.map((one, index) => (
        <div class="form-item" key={index}>
          <Value
            {...{ schemas, property: item, value: one, label: `${label} ${index + 1}` }}
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
        onClick={() => onChange([...items, firstValue(schemas, item)])}
      >
        Add to {label}
      </button>
    </div>
  );
}

/** Names and values of a kind. */
export function MapField(props: CollectionProps) {
  const { schemas, item, label, value, onChange, Value } = props;
  const [name, setName] = useState('');
  const entries = isObject(value) ? value : {};
  const add = (): void => {
    if (name === '' || Object.hasOwn(entries, name)) return;
    onChange({ ...entries, [name]: firstValue(schemas, item) });
    setName('');
  };
  const remove = (key: string): void => {
    const { [key]: _, ...rest } = entries;
    onChange(rest);
  };
  return (
    <div class="form-items">
      {Object.entries(entries).map(([key, one]) => (
        <div class="form-item" key={key}>
          <code>{key}</code>
          <Value
            {...{ schemas, property: item, value: one, label: key }}
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

/** A value that the schema leaves open, as YAML of its own. */
export function AnythingField(props: ValueProps) {
  const { label, value, onChange } = props;
  const [text, setText] = useState(() => printYaml(value ?? {}));
  const [fault, setFault] = useState('');
  const change = (next: string): void => {
    setText(next);
    const read = readYaml(next);
    setFault(read.fault?.message ?? '');
    if (read.fault === undefined) onChange(read.value);
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
