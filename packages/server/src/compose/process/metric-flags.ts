import { readFileSync } from 'node:fs';
import { loadYaml } from '@wheelhouse/codec';
import type { AllowedLabels } from '@wheelhouse/machinery';
import type { ServerConfig } from '../flags/config.ts';
import { FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';

/** Flags of which metrics there are and what stands in their labels, part of `serverFlags`. */
export const metricFlags = {
  'disabled-metrics': {
    group: 'Metrics',
    type: 'list',
    default: '',
    help: 'Names of metrics that are not shown, even if --show-hidden-metrics-for-version shows others.',
  },
  'allow-metric-labels': {
    group: 'Metrics',
    type: 'pairs',
    default: '',
    help: 'METRIC,LABEL=VALUE,VALUE: the values that may stand in a label of a metric; others become "unexpected". May be repeated.',
  },
  'allow-metric-labels-manifest': {
    group: 'Metrics',
    type: 'string',
    file: 'any',
    default: '',
    help: 'File of such pairs, as a YAML map. --allow-metric-labels takes its place.',
  },
} as const satisfies FlagTable;

type Values = FlagValues<typeof metricFlags>;

const keyForm = /^[a-zA-Z_:][a-zA-Z0-9_:]*,[a-zA-Z_][a-zA-Z0-9_]*$/;

/** What the flags come to. Throws FlagError for keys that name no label of a metric. */
export function metricOptions(values: Values): Pick<ServerConfig, 'metrics'> {
  const pairs = values['allow-metric-labels'];
  const file = values['allow-metric-labels-manifest'];
  const disabled = values['disabled-metrics'];
  for (const key of pairs.keys()) checkKey(key);
  if (pairs.size === 0 && file === '' && disabled.length === 0) return {};
  const labels = pairs.size > 0 ? { pairs } : file === '' ? undefined : { file };
  return { metrics: { disabled, ...(labels === undefined ? {} : { labels }) } };
}

function checkKey(key: string): void {
  if (keyForm.test(key)) return;
  throw new FlagError(
    '--allow-metric-labels must have a list of kv pair with format `metricName,labelName=labelValue, labelValue,...`',
  );
}

/** The values that labels may have. Rejects with a FlagError for a file that says no such thing. */
export async function readAllowedLabels(config: ServerConfig): Promise<AllowedLabels> {
  const { labels } = config.metrics ?? {};
  if (labels === undefined) return new Map();
  const pairs = 'pairs' in labels ? labels.pairs : await pairsOf(labels.file);
  const allowed = new Map<string, Map<string, ReadonlySet<string>>>();
  for (const [key, values] of pairs) {
    const [metric = '', label = ''] = key.split(',');
    const ofMetric = allowed.get(metric) ?? new Map<string, ReadonlySet<string>>();
    allowed.set(metric, ofMetric.set(label, new Set(values.split(','))));
  }
  return allowed;
}

async function pairsOf(file: string): Promise<ReadonlyMap<string, string>> {
  const wrong = (what: string) => new FlagError(`--allow-metric-labels-manifest: ${file}: ${what}`);
  const { decodeYaml } = await loadYaml();
  let value: unknown;
  try {
    ({ value } = await decodeYaml(readFileSync(file)));
  } catch (error) {
    throw wrong(error instanceof Error ? error.message : String(error));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw wrong('is no map of texts');
  }
  const pairs = new Map<string, string>();
  for (const [key, texts] of Object.entries(value)) {
    checkKey(key);
    if (typeof texts !== 'string') throw wrong(`${key} is no text`);
    pairs.set(key, texts);
  }
  return pairs;
}
