import { isPlugin, pluginNames } from '../../admission/plugin-list.ts';
import type { ServerConfig } from '../flags/config.ts';
import { FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';

const group = 'Admission';
const byDefault = pluginNames('on').join(', ');
const others = pluginNames('off').join(', ');

/** Flags of admission plugins, part of `serverFlags` (ADM-1). */
export const admissionFlags = {
  'enable-admission-plugins': {
    group,
    type: 'list',
    default: '',
    help: `Admission plugins to run besides those that run by default (${byDefault}). They run in an order of their own, whatever the order here. To be had are also ${others}.`,
  },
  'disable-admission-plugins': {
    group,
    type: 'list',
    default: '',
    help: 'Admission plugins not to run although they run by default.',
  },
  'admission-control': {
    group,
    type: 'list',
    default: '',
    deprecated:
      'Use --enable-admission-plugins or --disable-admission-plugins instead. Will be removed in a future version.',
    help: 'Admission plugins to run, and no others.',
  },
  'admission-control-config-file': {
    group,
    type: 'string',
    file: 'any',
    default: '',
    help: 'File with the configurations of admission plugins.',
  },
  'default-not-ready-toleration-seconds': {
    group,
    type: 'int',
    default: '300',
    help: 'Seconds for which every pod that says nothing of it tolerates a node that is not ready.',
  },
  'default-unreachable-toleration-seconds': {
    group,
    type: 'int',
    default: '300',
    help: 'Seconds for which every pod that says nothing of it tolerates a node out of reach.',
  },
} as const satisfies FlagTable;

type Values = FlagValues<typeof admissionFlags>;

/** Admission options from the flags. Throws FlagError, with upstream's text, for unknown names. */
export function admissionOptions(
  values: Values,
  specifiedFlags: ReadonlySet<string>,
): NonNullable<ServerConfig['admission']> {
  const flags = [
    'admission-control',
    'enable-admission-plugins',
    'disable-admission-plugins',
  ] as const;
  for (const flag of flags) for (const name of values[flag]) checkName(flag, name);
  const { 'enable-admission-plugins': enabled, 'disable-admission-plugins': disabled } = values;
  const both = enabled.filter((name) => disabled.includes(name)).sort();
  if (both.length > 0) {
    throw new FlagError(
      `[${both.join(' ')}] in enable-admission-plugins and disable-admission-plugins overlapped`,
    );
  }
  const configFile = values['admission-control-config-file'];
  const settings = {
    ...(configFile === '' ? {} : { configFile }),
    notReadyTolerationSeconds: values['default-not-ready-toleration-seconds'],
    unreachableTolerationSeconds: values['default-unreachable-toleration-seconds'],
  };
  if (!specifiedFlags.has('admission-control')) return { enabled, disabled, ...settings };
  if (
    specifiedFlags.has('enable-admission-plugins') ||
    specifiedFlags.has('disable-admission-plugins')
  ) {
    throw new FlagError(
      'admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive',
    );
  }
  return { enabled: values['admission-control'], only: true, ...settings };
}

function checkName(flag: string, name: string): void {
  if (isPlugin(name)) return;
  throw new FlagError(`${flag} plugin ${JSON.stringify(name)} is unknown`);
}
