import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

/** One page in a headless Chromium of its own, spoken to over a pipe: no port is opened. */
export class ChromiumPage implements AsyncDisposable {
  /** Console messages, uncaught errors and refused resources, as text. */
  readonly complaints: string[] = [];
  readonly #child: ChildProcess;
  readonly #profile: string;
  readonly #waiting = new Map<number, { resolve(value: Record<string, unknown>): void; reject(error: Error): void }>();
  readonly #listeners = new Map<string, () => void>();
  #nextId = 1;
  #session: string | undefined;

  private constructor(child: ChildProcess, profile: string) {
    this.#child = child;
    this.#profile = profile;
    let rest = '';
    (child.stdio[4] as Readable).setEncoding('utf8').on('data', (text: string) => {
      const messages = (rest + text).split('\0');
      rest = messages.pop() ?? '';
      for (const message of messages) this.#receive(JSON.parse(message) as Message);
    });
    child.once('exit', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('chromium ended'));
    });
  }

  static async open(size: { readonly width: number; readonly height: number; readonly dark?: boolean }): Promise<ChromiumPage> {
    const profile = await mkdtemp(join(tmpdir(), 'outwork-chromium-'));
    const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'];
    const quiet = ['--disable-component-update', '--disable-sync', '--disable-dev-shm-usage', '--remote-debugging-pipe'];
    const child = spawn(findChromium(), [...flags, ...quiet, `--user-data-dir=${profile}`], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    });
    const page = new ChromiumPage(child, profile);
    const { targetId } = await page.#send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await page.#send('Target.attachToTarget', { targetId, flatten: true });
    page.#session = sessionId as string;
    for (const domain of ['Page', 'Runtime', 'Log']) await page.#send(`${domain}.enable`);
    const { width, height, dark = false } = size;
    await page.#send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
    await page.#send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }] });
    return page;
  }

  /** Resolves when the page and all it refers to have loaded. */
  async load(url: string): Promise<void> {
    const loaded = new Promise<void>((resolve) => this.#listeners.set('Page.loadEventFired', resolve));
    await this.#send('Page.navigate', { url });
    await loaded;
  }

  /** Value of an expression in the page; its content security policy does not apply to it. */
  async evaluate<Value>(expression: string): Promise<Value> {
    const { result, exceptionDetails } = await this.#send('Runtime.evaluate', { expression, returnByValue: true });
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
    return (result as { value: Value }).value;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#session = undefined;
    await this.#send('Browser.close').catch(() => {});
    await exited;
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }

  #send(method: string, params: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const id = this.#nextId;
    this.#nextId += 1;
    const session = this.#session === undefined ? {} : { sessionId: this.#session };
    const reply = new Promise<Record<string, unknown>>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    (this.#child.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, ...session })}\0`);
    return reply;
  }

  #receive({ id, method, params = {}, result, error }: Message): void {
    if (id !== undefined) {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(result ?? {});
      else waiting?.reject(new Error(error.message));
      return;
    }
    if (method === 'Runtime.consoleAPICalled' || method === 'Runtime.exceptionThrown' || method === 'Log.entryAdded') {
      this.complaints.push(JSON.stringify(params));
    }
    this.#listeners.get(method ?? '')?.();
  }
}

function findChromium(): string {
  const names = ['chromium', 'chromium-browser', 'google-chrome'];
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    for (const name of names) {
      const file = join(directory, name);
      try {
        accessSync(file, constants.X_OK);
        return file;
      } catch {
        // Not here; the next directory of PATH may have it.
      }
    }
  }
  throw new Error('the report is tested in a real browser: install Chromium (Debian: apt-get install chromium)');
}
