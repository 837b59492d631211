import { useMemo, useState } from 'preact/hooks';
import type { LoadedObject } from '../../model/object.ts';
import { printJson, readYaml, withoutManagedFields } from '../../model/yaml.ts';
import { marked } from '../../model/yaml-marks.ts';
import { useApp } from '../parts/app.ts';
import { Button, Toggle } from '../parts/basics.tsx';

/** Who manages fields is seldom wanted; the choice holds for as long as the page is loaded. */
let showsManagedFields = false;

/** The server's own text, or the same as JSON. */
export function TextView(props: {
  readonly object: LoadedObject;
  readonly format: 'yaml' | 'json';
}) {
  const { object, format } = props;
  const app = useApp();
  const [isManaged, setManaged] = useState(showsManagedFields);
  const text = useMemo(() => {
    const shown = isManaged ? object.text : withoutManagedFields(object.text);
    return format === 'json' ? asJson(shown) : shown;
  }, [object, format, isManaged]);
  const change = (isOn: boolean): void => {
    showsManagedFields = isOn;
    setManaged(isOn);
  };
  return (
    <>
      <div class="bar">
        <Toggle label="With managed fields" isOn={isManaged} onChange={change} />
        <Button act={() => app.copy(text)}>Copy</Button>
      </div>
      <Marked text={text} />
    </>
  );
}

function Marked(props: { readonly text: string }) {
  const pieces = useMemo(() => marked(props.text), [props.text]);
  return (
    <pre class="text" tabIndex={0} role="region" aria-label="Text">
      {pieces.map(({ text, mark }, index) =>
        mark === 'plain' ? (
          text
        ) : (
          <span key={index} class={`mark-${mark}`}>
            {text}
          </span>
        ),
      )}
    </pre>
  );
}

function asJson(text: string): string {
  const read = readYaml(text);
  return read.fault === undefined ? printJson(read.value) : text;
}
