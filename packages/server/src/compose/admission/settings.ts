import type { PluginConfigurations } from '../../admission/configuration/plugins.ts';
import { isPlugin, pluginNames } from '../../admission/plugin-list.ts';
import { FlagError, type FlagValues, flagsIn } from '../../flags/flags.ts';
import type { WebhookCredentials } from '../../webhooks/webhook-client.ts';
import type { CommandLine, Feature } from '../feature.ts';

/** Which admission plugins run, and how. */
export interface AdmissionSettings {
  /** Admission plugins and their settings (ADM-1); kube-apiserver's defaults when absent. */
  readonly admission?: {
    /** Names of plugins to run in addition to the defaults. */
    readonly enabled?: readonly string[];
    /** Names of default plugins not to run. */
    readonly disabled?: readonly string[];
    /** Runs only the enabled plugins. */
    readonly only?: boolean;
    readonly notReadyTolerationSeconds?: number;
    readonly unreachableTolerationSeconds?: number;
    /** A file with plugin configurations. */
    readonly configFile?: string;
    /** The content of the file, read at the start. */
    readonly configurations?: PluginConfigurations;
    /** Client credentials for webhooks, read at the start. */
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
const admissionFlags = flagsIn(group, {
  'enable-admission-plugins': {
    type: 'list',
    help: `Admission plugins to run in addition to the defaults (${byDefault}), always in the server's own order. Also available: ${others}.`,
  },
  'disable-admission-plugins': { type: 'list', help: 'Default admission plugins to disable.' },
  'admission-control': {
    type: 'list',
    deprecated:
      'Use --enable-admission-plugins or --disable-admission-plugins instead. Will be removed in a future version.',
    help: 'The only admission plugins to run.',
  },
  'admission-control-config-file': {
    type: 'string',
    file: 'any',
    help: 'File with the configurations of admission plugins.',
  },
  'default-not-ready-toleration-seconds': {
    type: 'int',
    default: '300',
    help: 'Seconds for which a pod without its own toleration tolerates a node that is not ready.',
  },
  'default-unreachable-toleration-seconds': {
    type: 'int',
    default: '300',
    help: 'Seconds for which a pod without its own toleration tolerates an unreachable node.',
  },
});

/** The admission feature: the plugins that writes pass. */
export const admissionFeature: Feature<typeof admissionFlags, AdmissionSettings> = {
  flags: admissionFlags,
  settings: (values, line) => ({ admission: admissionSettings(values, line) }),
};

type Values = FlagValues<typeof admissionFlags>;

/**
 * Returns the admission settings. Throws FlagError in kube-apiserver's wording for unknown names.
 */
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
