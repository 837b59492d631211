import type { MetricRegistry } from '@wheelhouse/machinery';
import { printGoDuration } from '@wheelhouse/schema';
import { detailsOf, ExternalSigner, type SignerMeter } from '../../gates/authn/external-signer.ts';
import type { ServerConfig } from '../config.ts';
import { projectedSeconds, yearSeconds } from './settings.ts';

/**
 * Connects to the external signer, and warns if its maximum lifetime affects pods. @throws Error
 * when the process does not answer or has no suitable keys
 */
export async function openExternalSigner(
  config: Pick<ServerConfig, 'clock' | 'logger' | 'serviceAccounts'> & {
    readonly endpoint: string;
  },
  registry: MetricRegistry,
): Promise<ExternalSigner> {
  const { clock, logger, endpoint } = config;
  const meter = createMeter(registry, () => clock.now());
  const signer = await ExternalSigner.open({ endpoint, clock, logger, meter }).catch(
    (error: unknown) => {
      throw new Error(`while setting up external-jwt-signer: ${detailsOf(error)}`);
    },
  );
  if (config.serviceAccounts?.extension !== 'off') warnOfLifetime(signer.maxSeconds, logger);
  return signer;
}

function warnOfLifetime(maxSeconds: number, logger: ServerConfig['logger']): void {
  const extended = 'service-account-extend-token-expiration is true,';
  const supported = printGoDuration(BigInt(maxSeconds) * 1_000_000_000n);
  if (maxSeconds < projectedSeconds) {
    logger.warn(
      `${extended} in order to correctly trigger safe transition logic, token lifetime supported by external-jwt-signer must be longer than ${projectedSeconds} seconds (currently ${supported})`,
    );
  }
  if (maxSeconds < yearSeconds) {
    logger.warn(
      `${extended} tokens validity will be caped at the smaller of ${yearSeconds} seconds and maximum token lifetime supported by external-jwt-signer (${supported})`,
    );
  }
}

/** Counts calls of a signer under kube-apiserver's names (OPS-1). */
function createMeter(registry: MetricRegistry, nowMs: () => number): SignerMeter {
  const named = (name: string, help: string, labels: readonly string[]) => ({
    name: `apiserver_externaljwt_${name}`,
    help,
    stability: 'ALPHA' as const,
    labels,
  });
  const durations = registry.histogram({
    ...named('request_duration_seconds', 'How long calls of the signer took.', ['method', 'code']),
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  });
  const fetches = registry.counter(
    named('fetch_keys_request_total', 'Attempts at fetching the keys of the signer.', ['code']),
  );
  const signatures = registry.counter(
    named('sign_request_total', 'Attempts at having a token signed.', ['code']),
  );
  const success = registry.gauge(
    named('fetch_keys_success_timestamp', 'When the keys were fetched last, Unix seconds.', []),
  );
  const data = registry.gauge(
    named('fetch_keys_data_timestamp', 'Of when the fetched keys are, Unix seconds.', []),
  );
  return {
    called: (path, code, seconds) => durations.of(path, code).observe(seconds),
    fetched: (code) => fetches.of(code).add(1),
    refreshed(dataSeconds) {
      success.of().set(nowMs() / 1000);
      data.of().set(dataSeconds);
    },
    signed: (code) => signatures.of(code).add(1),
  };
}
