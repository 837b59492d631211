import { rmSync } from 'node:fs';
import { readOptions } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { temporaryFile } from '../support/cleanup.ts';
import { startTestServer } from '../support/harness.ts';

const issuer = '--oidc-issuer-url=https://issuer.example';
const client = '--oidc-client-id=us';

function oidcOf(...flags: string[]) {
  const outcome = readOptions(flags);
  if (outcome.kind !== 'options') throw new Error('no options');
  return outcome.options.config.authentication.oidc;
}

/** Starts with flags that must fail; returns the reason. */
async function startProblem(...flags: string[]): Promise<string> {
  const oidc = oidcOf(...flags);
  if (oidc === undefined) throw new Error('no flags of OpenID Connect');
  const started = startTestServer({ authentication: { oidc } });
  return started.then(
    async (server) => {
      await server.stop();
      return 'it started';
    },
    (error: Error) => error.message,
  );
}

describe('AUTHN-7: flags', () => {
  test('AUTHN-7: have kube-apiserver’s defaults', () => {
    expect(oidcOf()).toBeUndefined();
    expect(oidcOf(issuer, client)).toEqual({
      issuerUrl: 'https://issuer.example',
      clientId: 'us',
      usernameClaim: 'sub',
      usernamePrefix: '',
      groupsClaim: '',
      groupsPrefix: '',
      requiredClaims: new Map(),
      signingAlgorithms: ['RS256'],
    });
  });

  test('AUTHN-7: for required claims may be repeated, with any value', () => {
    const flags = ['a=1', 'b=x,y=z', 'a=2'].map((pair) => `--oidc-required-claim=${pair}`);
    expect(oidcOf(issuer, client, ...flags)?.requiredClaims).toEqual(
      new Map([
        ['a', '2'],
        ['b', 'x,y=z'],
      ]),
    );
    expect(() => oidcOf(issuer, client, '--oidc-required-claim=a')).toThrow(
      'invalid argument "a" for "--oidc-required-claim" flag: malformed pair, expect string=string',
    );
  });

  test.each([[[issuer]], [[client]], [['--oidc-groups-claim=x']], [[issuer, '--oidc-client-id=']]])(
    'AUTHN-7: %j alone prevent the start',
    (flags) => {
      expect(() => oidcOf(...flags)).toThrow(
        'oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set',
      );
    },
  );

  test('AUTHN-7: with invalid values stop the start, with the reason', async () => {
    expect(await startProblem('--oidc-issuer-url=http://issuer.example', client)).toBe(
      'invalid authentication configuration: jwt[0].issuer.url: Invalid value: ' +
        '"http://issuer.example": URL scheme must be https',
    );
    expect(await startProblem('--oidc-issuer-url=https://svc.default.svc', client)).toContain(
      'URL must not overlap with disallowed issuers: [https://svc.default.svc]',
    );
    expect(await startProblem(issuer, client, '--oidc-username-claim=')).toBe(
      'invalid authentication configuration: jwt[0].claimMappings.username: Required value: ' +
        'claim or expression is required',
    );
    for (const algorithm of ['HS256', 'none', 'rs256']) {
      expect(await startProblem(issuer, client, `--oidc-signing-algs=RS256,${algorithm}`)).toBe(
        `oidc: unsupported signing alg: "${algorithm}"`,
      );
    }
    const empty = temporaryFile('ca.crt', 'nothing');
    expect(await startProblem(issuer, client, `--oidc-ca-file=${empty}`)).toContain(
      'jwt[0].issuer.certificateAuthority: Invalid value: "<omitted>": ' +
        'data does not contain any valid RSA or ECDSA certificates',
    );
    rmSync(empty);
    expect(await startProblem(issuer, client, `--oidc-ca-file=${empty}`)).toContain('ENOENT');
  });
});
