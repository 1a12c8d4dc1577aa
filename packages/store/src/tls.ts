/** Checks what is needed for TLS before a cluster is started for nothing. */

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { Tls } from './gateway/server.js';
import { StoreError } from './options.js';

/** @throws a StoreError that says which part is wrong */
export function checkTls({ cert, key, ca }: Tls, nowMs = Date.now()): void {
  const certificate = certificateOf(cert, 'the certificate');
  if (!certificate.checkPrivateKey(privateKeyOf(key))) {
    throw new StoreError(
      'the key does not belong to the certificate',
      'Name the two files that were made together.',
    );
  }
  if (ca !== undefined) certificateOf(ca, 'the certificate of the authority');
  attempt('TLS refuses the certificate or its key', 'Make new ones with a stronger key.', () =>
    createSecureContext({ cert, key, ...(ca !== undefined && { ca }) }),
  );
  if (Date.parse(certificate.validTo) <= nowMs) {
    process.emitWarning(
      `the certificate has expired: ${certificate.validTo}. Clients that check it refuse to connect.`,
      'StoreWarning',
    );
  }
}

function certificateOf(pem: string | Buffer, what: string): X509Certificate {
  return attempt(`${what} can't be read`, 'It has to be a PEM file with a certificate.', () => {
    return new X509Certificate(pem);
  });
}

function privateKeyOf(pem: string | Buffer): KeyObject {
  const hint = 'It has to be a PEM file with a private key that has no passphrase.';
  return attempt("the key can't be read", hint, () => createPrivateKey(pem));
}

function attempt<T>(message: string, hint: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw new StoreError(`${message}: ${(error as Error).message}`, hint, { cause: error });
  }
}
