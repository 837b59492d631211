import { X509Certificate } from 'node:crypto';
import type { Server, TLSSocket } from 'node:tls';
import { listenEach } from '@wheelhouse/machinery';

const noCertificate = Buffer.alloc(1);

/**
 * Keeps connections sound whose client certificate the handshake could not verify. OpenSSL keeps the
 * error of a wrong signature in a queue of the thread, from which node takes it for an error of the
 * next read and fails the connection. What a certificate is worth is for the authenticator to say.
 */
export function forgetCertificateErrors(server: Server): void {
  listenEach(server, 'secureConnection', {
    where: 'tls',
    run: (socket: TLSSocket) => {
      if (socket.authorizationError) clearErrors();
    },
    end: (socket) => socket.destroy(),
  });
}

/** Reading a certificate empties the queue when it is done. */
function clearErrors(): void {
  try {
    new X509Certificate(noCertificate);
  } catch {
    // One byte is no certificate.
  }
}
