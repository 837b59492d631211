import type { PluginConfigurations } from '../../admission/configuration/plugins.ts';
import { isPlugin, pluginNames } from '../../admission/plugin-list.ts';
import type { CommandLine, Feature } from '../feature.ts';
import { FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';
import type { WebhookCredentials } from '../webhooks/webhook-client.ts';

/** Which admission plugins run, and how. */
export interface AdmissionSettings {
  /** Admission plugins and their settings (ADM-1); those of upstream's defaults when absent. */
  readonly admission?: {
    /** Names of plugins that run although they do not by default. */
    readonly enabled?: readonly string[];
    /** Names of plugins that do not run although they do by default. */
    readonly disabled?: readonly string[];
    /** Runs the enabled ones alone. */
    readonly only?: boolean;
    readonly notReadyTolerationSeconds?: number;
    readonly unreachableTolerationSeconds?: number;
    /** A file with configurations of plugins. */
    readonly configFile?: string;
    /** What the file says; the start reads it. */
    readonly configurations?: PluginConfigurations;
    /** Who this server is to webhooks, which the start reads too. */
    readonly webhookCredentials?: {
      readonly mutating?: WebhookCredentials;
      readonly validating?: WebhookCredentials;
    };
  };
}

const group = 'Admission';
const byDefault = pluginNames('on').join(', ');
const others = pluginNames('off').join(', ');

/** Flags of admission plugins (ADM-1). */
const admissionFlags = {
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

/** Admission: the plugins that writes pass. */
export const admissionFeature: Feature<typeof admissionFlags, AdmissionSettings> = {
  flags: admissionFlags,
  settings: (values, line) => ({ admission: admissionSettings(values, line) }),
};

type Values = FlagValues<typeof admissionFlags>;

/** Admission options from the flags. Throws FlagError, with upstream's text, for unknown names. */
function admissionSettings(
  values: Values,
  { specifiedFlags }: CommandLine,
): NonNullable<AdmissionSettings['admission']> {
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
