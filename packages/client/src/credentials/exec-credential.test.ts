import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CredentialError } from '../kubeconfig/client-config.ts';
import { decodeExecOutput, encodeExecInput } from './exec-credential.ts';

const apiVersion = 'client.authentication.svc.io/v1';

describe("a plugin's output", () => {
  test('AUTHN-11: YAML is accepted as well as JSON, and unknown members are ignored', async () => {
    const text =
      `apiVersion: ${apiVersion}\nkind: ExecCredential\nmore: 1\n` +
      'status:\n  token: t\n  odd: [1]\n  expirationTimestamp: 2030-01-01T00:00:00.5Z\n';
    expect(await decodeExecOutput(text, apiVersion)).toEqual({
      credential: { token: 't' },
      expiresMs: Date.UTC(2030, 0, 1),
    });
  });

  test('AUTHN-11: any output yields a credential or an error without secrets', async () => {
    const secret = 'very-secret';
    const scalar = fc.oneof(
      fc.string(),
      fc.constant(secret),
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.constant(`-----BEGIN CERTIFICATE-----\n${secret}\n-----END CERTIFICATE-----`),
      fc.constant(`-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY-----`),
    );
    const value = fc.oneof(scalar, fc.array(scalar, { maxLength: 2 }), fc.object({ maxDepth: 1 }));
    const status = fc.record(
      {
        token: value,
        clientCertificateData: value,
        clientKeyData: value,
        expirationTimestamp: fc.oneof(fc.constant(null), fc.constant('2030-01-01T00:00:00Z')),
      },
      { requiredKeys: [] },
    );
    const review = fc.record(
      {
        apiVersion: fc.constantFrom(apiVersion, 'v1', '', 'client.authentication.k8s.io/v1'),
        kind: fc.constantFrom('ExecCredential', 'Secret', ''),
        status: fc.oneof(status, scalar),
      },
      { requiredKeys: [] },
    );
    const text = fc.oneof(
      review.map((generated) => JSON.stringify(generated)),
      review.map((generated) => JSON.stringify(generated).slice(0, -3)),
      fc.string(),
    );
    // A failure prints the seed that reproduces it.
    await fc.assert(
      fc.asyncProperty(text, async (output) => {
        try {
          const { credential } = await decodeExecOutput(output, apiVersion);
          expect(credential.token ?? credential.certificatePem).toBeTruthy();
        } catch (error) {
          if (!(error instanceof CredentialError)) throw error;
          expect(error.message).not.toContain(secret);
        }
      }),
      { numRuns: 500, verbose: 1 },
    );
  });
});

test("AUTHN-11: a plugin's input omits unset fields of the cluster", () => {
  const input = (cluster?: Parameters<typeof encodeExecInput>[0]['cluster']) =>
    JSON.parse(encodeExecInput({ apiVersion, interactive: true, cluster }));
  expect(input()).toEqual({ kind: 'ExecCredential', apiVersion, spec: { interactive: true } });
  expect(
    input({ server: 's', tlsServerName: '', insecureSkipTlsVerify: true }).spec.cluster,
  ).toEqual({ server: 's', 'insecure-skip-tls-verify': true });
});
