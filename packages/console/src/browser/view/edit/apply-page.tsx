import { useEffect, useRef, useState } from 'preact/hooks';
import type { Attempt } from '../../model/access.ts';
import { type Applied, applyManifests, manifestsIn } from '../../model/editing.ts';
import { attemptOn } from '../../model/permissions.ts';
import { objectRoute } from '../../model/route.ts';
import { droppedEvent, readFiles } from '../drop-zone.tsx';
import { type ManifestFile, useApp, usePage, useRefusal } from '../parts/app.ts';
import { Button, Empty, Link, NamespaceInput, Toggle } from '../parts/basics.tsx';
import { ChangeList, ChangeText } from '../parts/changes.tsx';
import { defaultManager } from './editing-state.ts';

type Ownership = Parameters<typeof applyManifests>[2]['ownership'];

/** The results of applying or dry-running the files. */
interface Results {
  readonly kind: 'dry run' | 'applied';
  readonly applied: readonly Applied[];
}

/** Previews and applies manifest files. */
export function ApplyPage() {
  const app = useApp();
  usePage('Apply manifests');
  const [files, setFiles] = useState<readonly ManifestFile[]>([]);
  const [namespace, setNamespace] = useState('default');
  const [isForced, setForced] = useState(false);
  const [results, setResults] = useState<Results>();
  const latest = useRef(0);
  const run = async (
    chosen: readonly ManifestFile[],
    kind: Results['kind'],
    ownership: Ownership = isForced ? 'forced' : 'respected',
  ): Promise<void> => {
    latest.current += 1;
    const own = latest.current;
    const show = (applied: readonly Applied[]): void => {
      if (own === latest.current) setResults({ kind, applied });
    };
    const { kinds } = app.workspace.discovered ?? app.discovered;
    const manifests = chosen.flatMap((file) => manifestsIn(file, { kinds, namespace }));
    show([]);
    await applyManifests(app.api, manifests, {
      dryRun: kind === 'dry run' ? 'only' : 'no',
      ownership,
      fieldManager: defaultManager,
      onProgress: show,
    });
    if (kind === 'applied') app.announce('Applied.');
  };
  const take = (chosen: readonly ManifestFile[]): void => {
    if (chosen.length === 0) return;
    setFiles(chosen);
    void run(chosen, 'dry run');
  };
  useDropped(take);
  const [pasted, setPasted] = useState('');
  return (
    <section class="page">
      <header class="heading">
        <h1>Apply manifests</h1>
      </header>
      <Sources {...{ pasted, setPasted, take }} />
      <div class="bar">
        <NamespaceInput value={namespace} placeholder="default" onText={setNamespace} />
        <Toggle label="Take over fields from other managers" isOn={isForced} onChange={setForced} />
        <Runs {...{ files, namespace, run }} />
      </div>
      {results === undefined ? (
        <Empty>A dry run shows here what the files would change.</Empty>
      ) : (
        <ResultList
          results={results}
          takeOver={() => {
            setForced(true);
            return run(files, 'dry run', 'forced');
          }}
        />
      )}
    </section>
  );
}

/** The buttons of the two runs. */
function Runs(props: {
  readonly files: readonly ManifestFile[];
  readonly namespace: string;
  readonly run: (files: readonly ManifestFile[], kind: Results['kind']) => Promise<void>;
}) {
  const { files, namespace, run } = props;
  const { kinds } = useApp().discovered;
  const refusal = useRefusal(attemptsOf(files, { kinds, namespace }));
  const shared = { refusal, disabled: files.length === 0 };
  return (
    <div class="tools">
      <Button {...shared} act={() => run(files, 'dry run')}>
        Dry run
      </Button>
      <Button {...shared} act={() => run(files, 'applied')} class="primary">
        Apply
      </Button>
    </div>
  );
}

/** Manifests whose permissions are checked; if none of them may be applied, the files are refused. */
const checkedMax = 20;

function attemptsOf(
  files: readonly ManifestFile[],
  options: Parameters<typeof manifestsIn>[1],
): Attempt[] {
  return files
    .flatMap((file) => manifestsIn(file, options))
    .flatMap(({ target }) => (target === undefined ? [] : [attemptOn(target, 'patch')]))
    .slice(0, checkedMax);
}

/** Takes the files that were dropped before and after the page opened. */
function useDropped(take: (files: readonly ManifestFile[]) => void): void {
  const app = useApp();
  const latest = useRef(take);
  latest.current = take;
  useEffect(() => {
    const takeDropped = (): void => {
      const { current } = app.dropped;
      app.dropped.current = [];
      latest.current(current);
    };
    takeDropped();
    addEventListener(droppedEvent, takeDropped);
    return () => removeEventListener(droppedEvent, takeDropped);
  }, [app.dropped]);
}

function Sources(props: {
  readonly pasted: string;
  readonly setPasted: (text: string) => void;
  readonly take: (files: readonly ManifestFile[]) => void;
}) {
  const { pasted, setPasted, take } = props;
  return (
    <div class="sources">
      <label class="file-drop">
        <strong>Drop files anywhere, or choose them</strong>
        <span class="faint">YAML or JSON, any number of documents</span>
        <input
          type="file"
          multiple
          accept=".yaml,.yml,.json"
          aria-label="Manifest files"
          onChange={(event) => {
            void readFiles([...(event.currentTarget.files ?? [])]).then(take);
          }}
        />
      </label>
      <div class="paste">
        <textarea
          aria-label="Manifests"
          spellcheck={false}
          rows={6}
          placeholder="…or paste manifests here"
          value={pasted}
          onInput={(event) => setPasted(event.currentTarget.value)}
        />
        <Button
          act={() => take([{ name: 'pasted', text: pasted }])}
          disabled={pasted.trim() === ''}
        >
          Use this text
        </Button>
      </div>
    </div>
  );
}

const labels: Readonly<Record<Results['kind'], Readonly<Record<Applied['effect'], string>>>> = {
  'dry run': {
    created: 'would be created',
    changed: 'would change',
    unchanged: 'would not change',
    refused: 'would be refused',
  },
  applied: { created: 'created', changed: 'changed', unchanged: 'unchanged', refused: 'refused' },
};

const tones: Readonly<Record<Applied['effect'], string>> = {
  created: 'good',
  changed: 'warn',
  unchanged: 'plain',
  refused: 'bad',
};

function ResultList(props: {
  readonly results: Results;
  /** Repeats the dry run and takes over fields of other managers. */
  readonly takeOver: () => Promise<void>;
}) {
  const { kind, applied } = props.results;
  return (
    <ul class="cards applied" aria-live="polite">
      {applied.map(({ manifest, effect, changes, message, warnings, isOwned }) => (
        <li key={`${manifest.place} ${manifest.title}`} class="card">
          <div class="entry-head">
            {manifest.target === undefined ? (
              <strong>{manifest.title}</strong>
            ) : (
              <Link to={objectRoute(manifest.target)}>{manifest.title}</Link>
            )}
            <span class={`chip ${tones[effect]}`}>{labels[kind][effect]}</span>
            <span class="faint">{manifest.place}</span>
          </div>
          {message !== '' && <pre class="fault">{message}</pre>}
          {isOwned && (
            <p class="hint">
              Another manager owns these fields. Leave them out of the file, or take them over.{' '}
              <Button act={props.takeOver}>Preview taking the fields over</Button>
            </p>
          )}
          {warnings.map((warning) => (
            <p key={warning} class="warning">
              {warning}
            </p>
          ))}
          {changes.length > 0 && (
            <details open={effect === 'changed'}>
              <summary>
                {changes.length} field{changes.length === 1 ? '' : 's'}
              </summary>
              <ChangeList changes={changes} none="" />
              <ChangeText changes={changes} />
            </details>
          )}
        </li>
      ))}
    </ul>
  );
}
