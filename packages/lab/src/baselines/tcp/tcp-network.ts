/**
 * A message-passing network between processes of one machine: a TCP connection on the loopback interface for each pair that
 * communicates. The side that connects sends its addresses (`hello`) and may send messages after the confirmation (`welcome`).
 *
 * All messages that a process sends to another one in one turn of the event loop are one write: the process first handles all
 * messages that have arrived, then flushes.
 *
 * A broken connection is not reported here: on one machine it means that a process has ended, which its parent notices.
 * Messages to it are dropped.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Kind, Message } from '../passing/message.js';
import type { Network, Participant } from '../passing/network.js';
import { Link } from './link.js';

const LOOPBACK = '127.0.0.1';
const READ_BYTES = 1 << 16;

export class TcpNetwork implements Network {
  /** By address; several clients may share a link. */
  private readonly links: (Link | undefined)[] = [];
  private readonly all = new Set<Link>();
  /** Links with unwritten messages. */
  private readonly waiting: Link[] = [];
  /** Links that wait for `welcome`, and the callbacks for it. */
  private readonly welcomes = new Map<Link, () => void>();
  private readonly greeting = new Message();
  private server: Server | undefined;
  private receiver: Participant | undefined;

  /**
   * @param first  the first address of this process; a process of several clients has several
   * @param count  the number of its addresses
   */
  constructor(
    private readonly first: number,
    private readonly count: number,
  ) {}

  /** Sets the receiver of all messages. `from` is the first address of the sender's process. */
  attach(receiver: Participant): void {
    this.receiver = receiver;
  }

  /** Accepts connections. @returns the port */
  listen(): Promise<number> {
    const server = createServer({ noDelay: true }, (socket) => {
      const link = this.addLink(socket);
      socket.on('data', (bytes) => link.reader.push(bytes));
    });
    this.server = server;
    return new Promise((resolve, reject) => {
      server.once('error', (cause) =>
        reject(new Error(`can't listen on ${LOOPBACK}: ${cause.message}`, { cause })),
      );
      server.listen(0, LOOPBACK, () => resolve((server.address() as AddressInfo).port));
    });
  }

  /** Resolves when both sides can send. */
  connect(to: number, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      let link: Link;
      const socket = connect({
        host: LOOPBACK,
        port,
        noDelay: true,
        onread: {
          buffer: Buffer.alloc(READ_BYTES),
          callback: (length, buffer) => {
            link.reader.push(buffer.subarray(0, length));
            return true;
          },
        },
      });
      socket.once('error', (cause) =>
        reject(new Error(`can't connect to ${to} at port ${port}: ${cause.message}`, { cause })),
      );
      link = this.addLink(socket);
      this.links[to] = link;
      link.peer = to;
      this.welcomes.set(link, resolve);
      this.greet(link, Kind.hello);
    });
  }

  send(to: number, message: Message): void {
    const link = this.links[to];
    if (link === undefined) throw new Error(`there is no connection to ${to}`);
    this.sendOver(link, message);
  }

  close(): void {
    this.server?.close();
    for (const link of this.all) link.close();
  }

  private sendOver(link: Link, message: Message): void {
    if (!link.add(message)) return;
    if (this.waiting.length === 0) setImmediate(this.flush);
    this.waiting.push(link);
  }

  private readonly flush = (): void => {
    const { waiting } = this;
    for (let i = 0; i < waiting.length; i++) waiting[i].flush();
    waiting.length = 0;
  };

  private addLink(socket: Socket): Link {
    const link = new Link(socket, this.receive);
    this.all.add(link);
    socket.on('error', () => undefined);
    socket.once('close', () => this.all.delete(link));
    return link;
  }

  private readonly receive = (link: Link, message: Message): void => {
    if (message.kind === Kind.hello) this.welcome(link, message);
    else if (message.kind === Kind.welcome) this.welcomes.get(link)!();
    else this.receiver!.receive(link.peer, message);
  };

  private welcome(link: Link, hello: Message): void {
    link.peer = hello.client;
    for (let i = 0; i < hello.number; i++) this.links[hello.client + i] = link;
    this.greet(link, Kind.welcome);
  }

  private greet(link: Link, kind: Kind): void {
    this.greeting.kind = kind;
    this.sendOver(link, this.greeting.about(this.first, 0, this.count));
  }
}
