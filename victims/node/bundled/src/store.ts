/** Sessions that nobody removes. */
export class Session {
  text: string;
  constructor(public key: string, number: number) {
    this.text = `session ${number}`;
  }
}

export class SessionStore {
  private sessions = new Map<string, Session>();

  open(key: string): Session {
    const session = new Session(key, this.sessions.size);
    this.sessions.set(key, session);
    return session;
  }

  get size(): number {
    return this.sessions.size;
  }
}
